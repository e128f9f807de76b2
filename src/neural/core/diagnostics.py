"""Mistakes, warnings and notes: what is wrong, where, why, and a way out; and how they are shown.

error[E0203]: `num_heads` must divide `d_model`
  --> bert.neural:5:24
 5 |     TransformerEncoder(num_heads=7, d_model=512, dff=2048)
   |                        ^^^^^^^^^^^  ----------- 512 = 7 × 73 + 1
   = help: 8 heads give a head width of 64, the usual size
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from neural.core.visible import visible

SEVERITIES = {"E": "error", "W": "warning", "N": "note"}
WIDEST = 160
"""Longer lines are cut around the place in question."""


@dataclass(frozen=True, slots=True)
class Where:
    """A stretch of the text: from character `start` up to, not including, `end`."""

    start: int
    end: int

    def to(self, other: Where) -> Where:
        """From the start of this to the end of the other."""
        return Where(self.start, other.end)


@dataclass(frozen=True, slots=True)
class Label:
    """A second place that belongs to the story, with a few words."""

    where: Where
    text: str


@dataclass(frozen=True, slots=True)
class Fix:
    """What mends it: this text at that place."""

    where: Where
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnostic:
    """One thing to say about a text. The code's letter is its severity: E, W or N."""

    code: str
    message: str
    where: Where
    labels: tuple[Label, ...] = ()
    helps: tuple[str, ...] = ()
    fix: Fix | None = None
    """For editors, where one of the helps can be done without asking."""

    @property
    def severity(self) -> str:
        """`error`, `warning` or `note`."""
        return SEVERITIES[self.code[0]]


@dataclass(frozen=True)
class Source:
    """A text with a name, and its lines."""

    name: str
    text: str = field(repr=False)

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *(found.end() for found in re.finditer("\n", self.text))]

    def place(self, offset: int) -> tuple[int, int]:
        """Line and column of a character, both counted from 1."""
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1

    def line(self, number: int) -> str:
        """A line without its end, `number` counted from 1."""
        start = self._starts[number - 1]
        end = self.text.find("\n", start)
        return self.text[start : end if end >= 0 else len(self.text)].rstrip("\r")


def _plain(text: str, **_style: Any) -> str:
    return text


def _width(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)


def _printable(text: str) -> str:
    return "".join(letter if letter.isprintable() else " " if letter == "\t" else "�" for letter in text)


def render(diagnostic: Diagnostic, source: Source, style: Callable[..., str] = _plain) -> str:
    """The diagnostic as the user reads it; `style` colours a piece (`click.style` fits)."""
    colour = {"error": "red", "warning": "yellow", "note": "cyan"}[diagnostic.severity]
    line, column = source.place(diagnostic.where.start)
    out = [
        style(f"{diagnostic.severity}[{diagnostic.code}]", fg=colour, bold=True)
        + style(f": {visible(diagnostic.message)}", bold=True),
        f"  {style('-->', fg='blue')} {visible(source.name)}:{line}:{column}",
    ]
    marks = [(diagnostic.where, "^", ""), *((label.where, "-", label.text) for label in diagnostic.labels)]
    numbers = sorted({source.place(where.start)[0] for where, _, _ in marks}, key=lambda n: (n != line, n))
    margin = len(str(max(numbers)))
    for number in numbers:
        here = [mark for mark in marks if source.place(mark[0].start)[0] == number]
        shown, *under = _excerpt(source, number, here)
        out.append(f"{style(f'{number:>{margin + 1}} |', fg='blue')} {shown}".rstrip())
        out += [f"{' ' * (margin + 1)} {style('|', fg='blue')} {style(row, fg=colour)}" for row in under]
    out += [f"{' ' * (margin + 1)} {style('=', fg='blue')} help: {visible(text)}" for text in diagnostic.helps]
    return "\n".join(out)


def _excerpt(source: Source, number: int, marks: Iterable[tuple[Where, str, str]]) -> list[str]:
    """A line, the row of marks under it, and a row for each remark that is not about the last mark."""
    text = source.line(number)
    marks = sorted(marks, key=lambda mark: mark[0].start)
    columns = [source.place(where.start)[1] - 1 for where, _, _ in marks]
    cut = max(0, columns[0] - WIDEST // 2) if len(text) > WIDEST else 0
    shown = _printable(text[cut : cut + WIDEST])
    under, words = "", []   # the words with the column of their mark
    for column, (where, sign, word) in zip(columns, marks, strict=True):
        start = _width(shown[: max(0, column - cut)])
        length = _width(_printable(text[column : column + where.end - where.start])) or 1
        length = max(1, min(length, WIDEST - (column - cut)))
        if start < len(under):   # one mark inside another: the first one stays
            continue
        under = under.ljust(start) + sign * length
        words.append((start, word))
    last = words.pop()[1]
    return [shown, f"{under} {last}".rstrip(), *(" " * start + word for start, word in words if word)]


@dataclass(slots=True)
class Findings:
    """Collects diagnostics while a text is read; keeps `most` mistakes and as many remarks, and counts the rest."""

    most: int = 100
    items: list[Diagnostic] = field(default_factory=list)
    wrong: int = 0
    """How many mistakes there were, kept or not: a reader that asks whether one more came up asks this."""
    remarks: int = 0

    @property
    def full(self) -> bool:
        """Whether there are more mistakes than anybody reads at once."""
        return self.wrong >= self.most

    def say(
        self, code: str, message: str, where: Where, *, helps: Iterable[str | None] = (), labels: Iterable[Label] = (),
        fix: Fix | None = None,
    ) -> None:  # fmt: skip
        """Add one, unless the same thing was said of the same place already."""
        told = tuple(text for text in helps if text)
        new = Diagnostic(code=code, message=message, where=where, labels=tuple(labels), helps=told, fix=fix)
        if any((old.code, old.where) == (new.code, new.where) for old in self.items[-8:]):
            return
        before = self.wrong if new.severity == "error" else self.remarks
        if new.severity == "error":
            self.wrong += 1
        else:
            self.remarks += 1
        if before < self.most:
            self.items.append(new)

    @property
    def mistakes(self) -> list[Diagnostic]:
        """Only what is wrong."""
        return [item for item in self.items if item.severity == "error"]
