"""Terminal text: tables, numbers, curves and durations that fit into 80 columns.

All subcommands are imported for `neural --help` and for shell completion, so numpy and rich are
imported inside the functions that need them.
"""

from __future__ import annotations

import math
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence, Sized
from typing import TYPE_CHECKING

import click

from neural.core.escape import escape_controls, escape_controls_keep_colours
from neural.core.platform_support import path_argument as path_argument
from neural.core.platform_support import relative_path as relative_path
from neural.core.sparkline import bucket_means as bucket_means
from neural.core.sparkline import draw_sparkline as draw_sparkline
from neural.core.table import format_measure as format_measure
from neural.core.table import format_number, is_numeric

if TYPE_CHECKING:
    import numpy as np

    from neural.core.page_section import PageSection
    from neural.core.result import Result

STATE_COLOURS = {
    "running": "cyan",
    "finished": "green",
    "failed": "red",
    "lost": "red",
    "broken": "red",
    "stopped": "yellow",
}
"""Colours by state of a run: "lost" has no process any more, "broken" cannot be read."""
MAX_SCORES = 3
"""Scores of the best validation that are printed."""
_EMPTY_BRAILLE = 0x2800
"""Code point of the Braille character without dots; the 8 dots are the bits of its last byte."""
MAX_WIDTH = 110
"""Columns used at most, also in a wider terminal."""
LOG_SCALE_RATIO = 20
"""`draw_plot` uses a logarithmic axis where the largest value is this many times the smallest."""


def terminal_width() -> int:
    """Columns to use: those of the terminal, or 80 where the output is not a terminal."""
    return min(shutil.get_terminal_size((80, 24)).columns, MAX_WIDTH) if sys.stdout.isatty() else 80


def style_state(name: str) -> str:
    """The state of a run in its colour."""
    return click.style(escape_controls(name), fg=STATE_COLOURS.get(name))


def style_heading(text: str) -> str:
    """The title of a section, bold."""
    return click.style(escape_controls_keep_colours(text), bold=True)


def format_table(
    rows: Sequence[Sequence[str]], right_aligned: Sequence[int] = (), *, indent: str = "  "
) -> list[str]:
    """Lines of a table without borders; cells may hold colours of `click.style`.

    Cells are never wrapped or cut: shorten them first. `right_aligned` holds column indices
    from 0; in these columns spaces at the end of a cell are dropped.
    """
    from rich.cells import cell_len  # wide characters take two columns

    if not rows:
        return []
    # rich's own tables take .5 ms a row; colours are removed by click.echo outside of a terminal
    cells = [
        [_format_cell(cell, column in right_aligned) for column, cell in enumerate(row)]
        for row in rows
    ]
    widths = [[cell_len(click.unstyle(cell)) for cell in row] for row in cells]
    column_widths = [max(column) for column in zip(*widths, strict=True)]
    lines = []
    for row, row_widths in zip(cells, widths, strict=True):
        padded = []
        for column, (cell, width) in enumerate(zip(row, row_widths, strict=True)):
            spaces = " " * (column_widths[column] - width)
            padded.append(spaces + cell if column in right_aligned else cell + spaces)
        lines.append((indent + "  ".join(padded)).rstrip())
    return lines


def _format_cell(text: str, is_right_aligned: bool) -> str:
    """The text on one line, without control characters; colours end with the cell."""
    cell = escape_controls_keep_colours(text.replace("\n", " "))
    if is_right_aligned:
        cell = cell.rstrip()
    return f"{cell}\x1b[0m" if "\x1b" in cell and not cell.endswith("\x1b[0m") else cell


def format_scores(
    scores: Mapping[str, float | None],
    format_score: Callable[[float | None], str] = format_number,
) -> str:
    """The first scores of a validation, and how many more there are; a standard error is none."""
    texts = [
        f"{name} {format_score(value)}"
        for name, value in scores.items()
        if not name.endswith("/standard_error")
    ]
    more = f"  and {len(texts) - MAX_SCORES} more" if len(texts) > MAX_SCORES else ""
    return "  ".join(texts[:MAX_SCORES]) + more


def print_result(result: Result, *, as_json: bool = False) -> None:
    """Print the sections of a result, or its data as JSON."""
    if as_json:
        click.echo(result.to_json())
        return
    for index, section in enumerate(result.to_sections(terminal_width())):
        click.echo("\n" * (index > 0), nl=False)
        print_section(section)


def print_section(section: PageSection) -> None:
    """Print heading, text and table of a section."""
    click.echo("\n".join(format_section_lines(section)))


def format_section_lines(section: PageSection) -> list[str]:
    """Heading, text and table of a section; columns of numbers are right-aligned."""
    # texts come from documents and run folders of others: no control character is printed
    texts = escape_controls(section.text).split("\n") if section.text else []
    lines = []
    if section.title:
        first_line = texts.pop(0) if texts else ""
        lines.append(f"{style_heading(escape_controls(section.title))}  {first_line}".rstrip())
    lines += [f"  {line}".rstrip() for line in texts]
    rows = [
        [format_number(cell) if not isinstance(cell, str) else cell for cell in row]
        for row in section.table_rows
    ]
    if not rows:
        return lines
    if texts:
        lines.append("")
    numeric_columns = [
        column for column in range(len(rows[0])) if all(is_numeric(row[column]) for row in rows)
    ]
    header_rows = [list(section.table_head)] if section.table_head else []
    if "state" in section.table_head:
        column = list(section.table_head).index("state")
        for row in rows:
            row[column] = style_state(row[column])
    return [*lines, *format_table([*header_rows, *rows], right_aligned=numeric_columns)]


def format_count(items: Sized | int, noun: str) -> str:
    """`1 trial`, `2 trials`."""
    count = items if isinstance(items, int) else len(items)
    return f"{count} {noun}" + ("" if count == 1 else "s")


def format_duration(seconds: float) -> str:
    """A duration in the largest unit of which it has at least 1.5."""
    for size, unit in ((86400, "days"), (3600, "hours"), (60, "minutes"), (1, "seconds")):
        if seconds >= 1.5 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds * 1000:.0f} ms"


def draw_plot(
    line: tuple[np.ndarray, np.ndarray],
    points: Mapping[str, tuple[np.ndarray, np.ndarray]],
    *,
    columns: int,
    rows: int = 8,
) -> list[str]:
    """A curve (steps, values) in Braille dots, with the points of other series drawn over it.

    The keys of `points` are the characters that mark them. The vertical axis is logarithmic where
    the values span more than `LOG_SCALE_RATIO`.
    """
    import numpy as np

    series = [line, *points.values()]
    if not any(np.isfinite(values).any() for _, values in series):
        return []
    last = int(max(steps.max(initial=0) for steps, _ in series))
    dot_columns = 2 * columns  # a Braille character holds 2 × 4 dots
    means = bucket_means(*line, last=last, columns=columns)
    filled = np.flatnonzero(np.isfinite(means))
    curve = (
        np.interp(np.arange(dot_columns) / 2 - 0.25, filled, means[filled], right=np.nan)
        if len(filled)
        else np.empty(0)
    )
    drawn_values = [curve, *(values for _, values in points.values())]
    finite = np.concatenate([values[np.isfinite(values)] for values in drawn_values])
    low, high = float(finite.min()), float(finite.max())
    is_logarithmic = low > 0 and high / low > LOG_SCALE_RATIO
    scale = np.log if is_logarithmic else np.asarray
    bottom, extent = float(scale(low)), float(scale(high)) - float(scale(low)) or 1.0
    heights = (scale(curve) - bottom) / extent
    cells = _draw_curve(heights, columns, rows)
    for marker, (steps, values) in points.items():
        for step, value in zip(steps, values, strict=True):
            if math.isfinite(value):
                height = (float(scale(value)) - bottom) / extent
                column = min(int(step) * columns // (last + 1), columns - 1)
                cells[round((1 - height) * (rows - 1))][column] = marker
    middle = math.exp(bottom + extent / 2) if is_logarithmic else bottom + extent / 2
    labels = {rows - 1: format_number(low)}
    if high > low:
        labels |= {0: format_number(high), rows // 2: format_number(middle)}
    margin = max(map(len, labels.values()))
    lines = [
        f"  {labels.get(y, ''):>{margin}} ┤{''.join(row).rstrip(chr(_EMPTY_BRAILLE))}"
        for y, row in enumerate(cells)
    ]
    axis_end = f"{last:,}" + ("  (logarithmic)" if is_logarithmic else "")
    return [
        *lines,
        f"  {'':>{margin}} └{'─' * columns}",
        f"  {'':>{margin}}  0{axis_end:>{columns - 1}}",
    ]


def _draw_curve(heights: np.ndarray, columns: int, rows: int) -> list[list[str]]:
    """A (rows, columns) grid of Braille characters that show a curve.

    `heights` go from 0 to 1, two per column; NaN leaves a gap.
    """
    import numpy as np

    dots = np.zeros((4 * rows, 2 * columns), dtype=bool)
    previous_level: int | None = None
    for dot_column, height in enumerate(heights):
        if math.isnan(height):
            previous_level = None
            continue
        level = round((1 - min(max(height, 0), 1)) * (4 * rows - 1))
        # A vertical stroke from the previous level, so that a steep curve has no gaps.
        ends = level, level if previous_level is None else previous_level
        dots[min(ends) : max(ends) + 1, dot_column] = True
        previous_level = level
    return [
        [_braille(dots[4 * y : 4 * y + 4, 2 * x : 2 * x + 2]) for x in range(columns)]
        for y in range(rows)
    ]


def _braille(dots: np.ndarray) -> str:
    """The Braille character with these (4, 2) dots."""
    dot_bits = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
    return chr(
        _EMPTY_BRAILLE + sum(dot_bits[y][x] for y in range(4) for x in range(2) if dots[y, x])
    )
