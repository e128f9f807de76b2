"""Errors, warnings and notes about a text, with span, labels, help and fix; and their rendering.

error[E0203]: `num_heads` must divide `d_model`
  --> bert.neural:5:24
 5 |     TransformerEncoder(num_heads=7, d_model=512, dff=2048)
   |                        ^^^^^^^^^^^  ----------- 512 = 7 × 73 + 1
   = help: 8 heads give a head width of 64, the usual size

A mark is a row of `^` (the span) or `-` (a label) under a source line.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from neural.core.escape import escape_controls

SEVERITY_BY_LETTER = {"E": "error", "W": "warning", "N": "note"}
MAX_SOURCE_CHARACTERS = 2 * 2**20
"""Size limit of a program; longer files are not read to their end."""
MAX_LINE_WIDTH = 160
"""Longer source lines are cut around the span."""


@dataclass(frozen=True, slots=True)
class SourceSpan:
    """Range of characters in a text, from `start` up to but not including `end`."""

    start: int
    end: int

    def to(self, other: SourceSpan) -> SourceSpan:
        """Span from the start of this one to the end of the other."""
        return SourceSpan(self.start, other.end)


@dataclass(frozen=True, slots=True)
class Label:
    """A secondary span with a short text, which is printed after its mark."""

    span: SourceSpan
    text: str


@dataclass(frozen=True, slots=True)
class Fix:
    """A replacement text for a span."""

    span: SourceSpan
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnostic:
    """One error, warning or note. The first letter of the code (E, W, N) is the severity."""

    code: str
    message: str
    span: SourceSpan
    labels: tuple[Label, ...] = ()
    helps: tuple[str, ...] = ()
    fix: Fix | None = None
    """For editors, where one of the helps can be applied automatically."""

    @property
    def severity(self) -> str:
        """`error`, `warning` or `note`."""
        return SEVERITY_BY_LETTER[self.code[0]]


@dataclass(frozen=True)
class SourceText:
    """A text with a name; maps offsets to lines and columns."""

    name: str
    text: str = field(repr=False)

    @cached_property
    def _line_starts(self) -> list[int]:
        return [0, *(newline.end() for newline in re.finditer("\n", self.text))]

    def line_and_column(self, offset: int) -> tuple[int, int]:
        """Line and column of an offset, both from 1."""
        line = bisect_right(self._line_starts, offset)
        return line, offset - self._line_starts[line - 1] + 1

    def get_line(self, number: int) -> str:
        """Line `number` (from 1) without its line ending."""
        start = self._line_starts[number - 1]
        end = self.text.find("\n", start)
        return self.text[start : end if end >= 0 else len(self.text)].rstrip("\r")


def _apply_no_style(text: str, **_style: Any) -> str:
    """Stands for `click.style` where there are no colours."""
    return text


def _display_width(text: str) -> int:
    """Columns in a terminal; East Asian wide characters take two."""
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)


def _replace_unprintable(text: str) -> str:
    return "".join(
        character if character.isprintable() else " " if character == "\t" else "�"
        for character in text
    )


def render_diagnostic(
    diagnostic: Diagnostic, source: SourceText, style: Callable[..., str] = _apply_no_style
) -> str:
    """The diagnostic as text for a terminal. `style` colours a string, as `click.style` does."""
    colour = {"error": "red", "warning": "yellow", "note": "cyan"}[diagnostic.severity]
    line, column = source.line_and_column(diagnostic.span.start)
    output_lines = [
        style(f"{diagnostic.severity}[{diagnostic.code}]", fg=colour, bold=True)
        + style(f": {escape_controls(diagnostic.message)}", bold=True),
        f"  {style('-->', fg='blue')} {escape_controls(source.name)}:{line}:{column}",
    ]
    marks = [
        (diagnostic.span, "^", ""),
        *((label.span, "-", label.text) for label in diagnostic.labels),
    ]
    line_numbers = sorted(
        {source.line_and_column(span.start)[0] for span, _, _ in marks},
        key=lambda number: (number != line, number),  # the line of the error comes first
    )
    margin = len(str(max(line_numbers)))
    for number in line_numbers:
        line_marks = [mark for mark in marks if source.line_and_column(mark[0].start)[0] == number]
        excerpt, *mark_rows = _render_excerpt(source, number, line_marks)
        output_lines.append(f"{style(f'{number:>{margin + 1}} |', fg='blue')} {excerpt}".rstrip())
        output_lines += [
            f"{' ' * (margin + 1)} {style('|', fg='blue')} {style(row, fg=colour)}"
            for row in mark_rows
        ]
    output_lines += [
        f"{' ' * (margin + 1)} {style('=', fg='blue')} help: {escape_controls(text)}"
        for text in diagnostic.helps
    ]
    return "\n".join(output_lines)


def _render_excerpt(
    source: SourceText, line_number: int, marks: Iterable[tuple[SourceSpan, str, str]]
) -> list[str]:
    """The source line, the row of marks with the last label, and a row per other label.

    `marks` are (span, sign, label); `line_number` counts from 1.
    """
    text = source.get_line(line_number)
    marks = sorted(marks, key=lambda mark: mark[0].start)
    columns = [source.line_and_column(span.start)[1] - 1 for span, _, _ in marks]
    first_shown_column = (
        max(0, columns[0] - MAX_LINE_WIDTH // 2) if len(text) > MAX_LINE_WIDTH else 0
    )
    excerpt = _replace_unprintable(text[first_shown_column : first_shown_column + MAX_LINE_WIDTH])
    mark_row, labels = "", []  # (column, text) per mark
    for column, (span, sign, label) in zip(columns, marks, strict=True):
        start = _display_width(excerpt[: max(0, column - first_shown_column)])
        length = (
            _display_width(_replace_unprintable(text[column : column + span.end - span.start])) or 1
        )
        length = max(1, min(length, MAX_LINE_WIDTH - (column - first_shown_column)))
        if start < len(mark_row):  # overlapping marks: the first one stays
            continue
        mark_row = mark_row.ljust(start) + sign * length
        labels.append((start, label))
    last_label = labels.pop()[1]
    return [
        excerpt,
        f"{mark_row} {last_label}".rstrip(),
        *(" " * start + label for start, label in labels if label),
    ]


@dataclass(slots=True)
class DiagnosticCollector:
    """Collects diagnostics.

    Keeps at most `max_per_severity` errors and as many warnings and notes; counts the others.
    """

    max_per_severity: int = 100
    items: list[Diagnostic] = field(default_factory=list)
    error_count: int = 0
    """Number of errors, including those that were not kept."""
    warning_count: int = 0
    """Number of warnings and notes, including those that were not kept."""

    @property
    def is_full(self) -> bool:
        """Whether the limit of errors is reached, so that reading the text can stop."""
        return self.error_count >= self.max_per_severity

    def add(
        self,
        code: str,
        message: str,
        span: SourceSpan,
        *,
        helps: Iterable[str | None] = (),
        labels: Iterable[Label] = (),
        fix: Fix | None = None,
    ) -> None:
        """Add a diagnostic, unless the same code was just reported for the same span."""
        diagnostic = Diagnostic(
            code=code,
            message=message,
            span=span,
            labels=tuple(labels),
            helps=tuple(text for text in helps if text),
            fix=fix,
        )
        # The last 8 are enough: repetitions follow each other closely.
        if any((recent.code, recent.span) == (code, span) for recent in self.items[-8:]):
            return
        is_error = diagnostic.severity == "error"
        count = self.error_count if is_error else self.warning_count
        if is_error:
            self.error_count += 1
        else:
            self.warning_count += 1
        if count < self.max_per_severity:
            self.items.append(diagnostic)

    @property
    def errors(self) -> list[Diagnostic]:
        """Errors only, without warnings and notes."""
        return [item for item in self.items if item.severity == "error"]
