"""Tables of results, and plain text for them: no colours, no borders.

    table = Table((Column("change", unit="nats", format=format_signed),), [(0.25,), (0.5,)])
    table.to_dataframe(), table.to_csv(), table.to_section("heads")

A column knows its name, unit, meaning and format once, for the terminal, pages, CSV and pandas.
"""

from __future__ import annotations

import csv
import io
import math
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

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


def format_cell(value: Any) -> str:
    """Text as it is, numbers with four significant digits, a dash for None and NaN."""
    if isinstance(value, float) or value is None:
        return format_number(value)
    return str(value)


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table."""

    name: str
    """Key in records, CSV and DataFrames."""
    title: str | None = None
    """Header for people; the name if None."""
    unit: str = ""
    meaning: str = ""
    """What the values are, in a sentence."""
    format: Callable[[Any], str] = format_cell
    """Text of a value."""

    @property
    def header(self) -> str:
        """The title, else the name in words."""
        return self.name.replace("_", " ") if self.title is None else self.title


@dataclass(frozen=True)
class Table:
    """Rows with a value for every column."""

    columns: tuple[Column, ...]
    rows: Sequence[Sequence[Any]]

    @classmethod
    def from_records(cls, records: Sequence[Mapping[str, Any]]) -> Table:
        """A row per record, a column per name in any of them; None where a record lacks it."""
        names = list(dict.fromkeys(name for record in records for name in record))
        rows = [[record.get(name) for name in names] for record in records]
        return cls(tuple(map(Column, names)), rows)

    def __len__(self) -> int:
        return len(self.rows)

    def to_records(self) -> list[dict[str, Any]]:
        """A dict per row."""
        names = [column.name for column in self.columns]
        return [dict(zip(names, row, strict=True)) for row in self.rows]

    def to_dataframe(self) -> Any:
        """A pandas DataFrame; its `attrs` have the units and meanings of the columns."""
        import pandas  # slow to import

        frame = pandas.DataFrame(list(self.rows), columns=[column.name for column in self.columns])
        frame.attrs["units"] = {column.name: column.unit for column in self.columns if column.unit}
        frame.attrs["meanings"] = {
            column.name: column.meaning for column in self.columns if column.meaning
        }
        return frame

    def to_csv(self) -> str:
        """Comma-separated values with a line of names; None is an empty cell."""
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        writer.writerow([column.name for column in self.columns])
        writer.writerows(self.rows)
        return buffer.getvalue()

    def to_section(self, title: str = "", text: str = "") -> PageSection:
        """The table as people read it, under a heading."""
        rows = [
            [column.format(value) for column, value in zip(self.columns, row, strict=True)]
            for row in self.rows
        ]
        return PageSection(
            title=title,
            text=text,
            table_head=[column.header for column in self.columns],
            table_rows=rows,
        )


def tabulate_scores(scores: Mapping[str, Mapping[str, Any]]) -> Table:
    """A row per predictor and score; `scores` are estimates with value, low and high, by both."""
    columns = (
        Column("predictor"),
        Column("score"),
        Column("value"),
        Column("low", meaning="95 % interval"),
        Column("high", meaning="95 % interval"),
    )
    rows = [
        (predictor, name, estimate.value, estimate.low, estimate.high)
        for predictor, row in scores.items()
        for name, estimate in row.items()
    ]
    return Table(columns, rows)


def format_signed(value: float | None) -> str:
    """A change with its sign and four decimals; a dash for None and NaN."""
    if value is None or not math.isfinite(value):
        return "–"
    return f"{value:+.4f}".replace("-", "−")


def format_age(timestamp: float) -> str:
    """Time since a Unix timestamp: `3 min`, `2 h`, `5 d`."""
    seconds = max(0.0, time.time() - timestamp)
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def format_measure(value: float | None) -> str:
    """A measure of a head: two decimals below 100, none above; a dash for None and NaN."""
    if value is None or math.isnan(value):
        return "–"
    return f"{value:.2f}" if abs(value) < 100 else f"{value:.0f}"
