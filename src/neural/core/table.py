"""Plain text tables, as objects print themselves in Python: no colours, no borders.

print(format_table([("run", "loss"), ("small", "0.31")], right_aligned=(1,)))
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from neural.core.escape import escape_controls
from neural.core.page_section import PageSection

MAX_SHOWN_ROWS = 20
"""Rows of a long table that are printed; a last line counts the others."""


def format_table(
    rows: Sequence[Sequence[str]], right_aligned: Sequence[int] = (), *, indent: str = "  "
) -> str:
    """Cells in columns, two spaces apart. `right_aligned` holds column indices from 0."""
    cells = [[escape_controls(cell.replace("\n", " ")) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = [
        "  ".join(
            cell.rjust(width) if column in right_aligned else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in cells
    ]
    return "\n".join((indent + line).rstrip() for line in lines)


def format_section(section: PageSection, max_rows: int = MAX_SHOWN_ROWS) -> str:
    """Heading, text and table of a section; columns of numbers are right-aligned."""
    text_lines = escape_controls(section.text).split("\n") if section.text else []
    lines = []
    if section.title:
        first_line = text_lines.pop(0) if text_lines else ""
        lines.append(f"{escape_controls(section.title)}  {first_line}".rstrip())
    lines += [f"  {line}".rstrip() for line in text_lines]
    rows = [
        [cell if isinstance(cell, str) else format_number(cell) for cell in row]
        for row in section.table_rows[:max_rows]
    ]
    if rows:
        numeric_columns = [
            column for column in range(len(rows[0])) if all(is_numeric(row[column]) for row in rows)
        ]
        header_rows = [list(section.table_head)] if section.table_head else []
        lines.append(format_table([*header_rows, *rows], numeric_columns))
    hidden_count = len(section.table_rows) - len(rows)
    if hidden_count > 0:
        lines.append(f"  … and {hidden_count:,} more")
    return "\n".join(lines)


def is_numeric(cell: str) -> bool:
    """Whether a cell is a number, a dash, the dot of a zero, or empty."""
    return bool(re.fullmatch(r"[*+−-]?[\d.,]+|–|·|", cell))


def format_number(value: float | None) -> str:
    """Four significant digits; a dash for None and NaN."""
    if value is None or math.isnan(value):
        return "–"
    return f"{value:.4g}" if value == 0 or 1e-3 <= abs(value) < 1e5 else f"{value:.2e}"
