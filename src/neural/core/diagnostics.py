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
"""Longest accepted program. The parser reports a longer one as an error, without reading it."""
MAX_LINE_WIDTH = 160
"""Of a longer source line, only this many characters around the span are shown."""


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
    """A replacement text for a span, with further replacements that belong to it."""

    span: SourceSpan
    text: str
    more: tuple[Fix, ...] = ()

    @property
    def edits(self) -> tuple[Fix, ...]:
        """All replacements, each without `more`."""
        return (Fix(self.span, self.text), *(edit for fix in self.more for edit in fix.edits))

    @property
    def extent(self) -> int:
        """Number of characters of the text that the fix replaces."""
        return sum(edit.span.end - edit.span.start for edit in self.edits)


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnostic:
    """One error, warning or note. The first letter of the code (E, W, N) is the severity."""

    code: str
    message: str
    span: SourceSpan
    labels: tuple[Label, ...] = ()
    helps: tuple[str, ...] = ()
    fix: Fix | None = None
    """Correction that an editor can apply; None if there is no automatic one."""

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
    """Replaces `click.style` if the output has no colours."""
    return text


def _display_width(text: str) -> int:
    """Number of terminal columns; East Asian wide characters take two."""
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)


def _replace_unprintable(text: str) -> str:
    """Replace tabs by one space and other unprintable characters by `�`: the width stays."""
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
    """Rows of text: the source line, the marks followed by the last label, one row per other label.

    `marks` are (span, sign, label), where sign is `^` or `-`; `line_number` counts from 1.
    """
    text = source.get_line(line_number)
    marks = sorted(marks, key=lambda mark: mark[0].start)
    columns = [source.line_and_column(span.start)[1] - 1 for span, _, _ in marks]
    first_shown_column = (
        max(0, columns[0] - MAX_LINE_WIDTH // 2) if len(text) > MAX_LINE_WIDTH else 0
    )
    excerpt = _replace_unprintable(text[first_shown_column : first_shown_column + MAX_LINE_WIDTH])
    mark_row = ""
    labels = []  # (column, text) per mark
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


def apply_fixes(text: str, diagnostics: Iterable[Diagnostic]) -> tuple[str, list[Diagnostic]]:
    """The text after the fixes of the diagnostics, and those whose fix was applied.

    Of fixes that touch the same characters only the largest is applied: it contains the others, or
    a second pass finds them.
    """
    fixable = [diagnostic for diagnostic in diagnostics if diagnostic.fix is not None]
    applied_edits: dict[tuple[int, int], Fix] = {}
    applied: list[Diagnostic] = []
    # Of equally large fixes the last one counts: later diagnostics know more about the text.
    fixable.reverse()
    for diagnostic in sorted(fixable, key=_sort_by_extent):
        edits = diagnostic.fix.edits if diagnostic.fix else ()
        overlaps = [
            any(_overlap(edit.span, other.span) for other in applied_edits.values())
            for edit in edits
        ]
        if all(overlaps):
            applied.append(diagnostic)  # a larger fix, or an equal one, contains it
        elif not any(overlaps):
            applied_edits |= {(edit.span.start, edit.span.end): edit for edit in edits}
            applied.append(diagnostic)
    for start, end in sorted(applied_edits, reverse=True):
        before, after = text[:start], text[end:]
        replacement = applied_edits[start, end].text
        line_start = before.rpartition("\n")[2]
        if start < end and not replacement and not line_start.strip():
            # Nothing is left of the line: remove it, or its indentation at least.
            rest, newline, following = after.partition("\n")
            if not rest.strip():
                before, after = before[: len(before) - len(line_start)], following
                before = before if newline else before.removesuffix("\n")
            else:
                after = after.lstrip(" \t")
        text = before + replacement + after
    return text, sorted(applied, key=lambda diagnostic: diagnostic.span.start)


def _sort_by_extent(diagnostic: Diagnostic) -> int:
    """Sort key: diagnostics with large fixes first."""
    return -diagnostic.fix.extent if diagnostic.fix else 0


def _overlap(first: SourceSpan, second: SourceSpan) -> bool:
    """Whether two spans share a character, or are empty at the same place."""
    return first == second or (first.start < second.end and second.start < first.end)


@dataclass(slots=True)
class DiagnosticCollector:
    """Collects the diagnostics of one text.

    Stores at most `max_per_severity` errors, and as many warnings and notes together; more are only
    counted.
    """

    max_per_severity: int = 100
    items: list[Diagnostic] = field(default_factory=list)
    error_count: int = 0
    """Number of errors, including those that were not kept."""
    warning_count: int = 0
    """Number of warnings and notes, including those that were not kept."""

    @property
    def is_full(self) -> bool:
        """Whether the limit of errors is reached, so that the parser can stop reading the text."""
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
        # Comparing with the last 8 is enough: repetitions follow each other closely.
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

    def extend(self, diagnostics: Iterable[Diagnostic]) -> None:
        """Add diagnostics of another collector."""
        for item in diagnostics:
            self.add(
                item.code,
                item.message,
                item.span,
                helps=item.helps,
                labels=item.labels,
                fix=item.fix,
            )

    @property
    def errors(self) -> list[Diagnostic]:
        """Errors only, without warnings and notes."""
        return [item for item in self.items if item.severity == "error"]
