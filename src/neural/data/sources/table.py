"""CSV and TSV tables: one row per example, numeric columns, one target column."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from neural.core.errors import TaskError
from neural.core.names import suggest_name
from neural.data.input_checks import reshape_rows
from neural.data.source import DataLocation, DataSource, Examples

if TYPE_CHECKING:
    from neural.language.network import Network

SUFFIXES = {".csv": ",", ".tsv": "\t"}
"""Delimiter by the suffix of the file."""
TARGET_COLUMNS = ("label", "target", "y")
"""Names of the target column; without one of them it is the last column."""
MAX_LISTED_COLUMNS = 8
"""Largest number of columns or problems listed in a message."""


class Table(DataSource):
    """CSV or TSV, with or without a header; words in the target column become sorted classes."""

    description: ClassVar[str] = (
        "table.csv: numbers, and the target in the last column or in one named label, target or y"
    )

    @classmethod
    def matches(cls, location: DataLocation) -> bool:
        """A file with the suffix .csv or .tsv."""
        return isinstance(location, Path) and location.suffix.lower() in SUFFIXES

    @classmethod
    def read(cls, location: Path, network: Network) -> Examples:
        """Read all rows; errors name line and column."""
        table = read_cells(location)
        names, rows = table.names, table.rows
        if len(names) < 2:
            raise TaskError(
                f"{location.name} has one column; it needs at least one number and the target"
            )
        target_column = next(
            (column for column, name in enumerate(names) if is_target_column(name)), len(names) - 1
        )
        input_columns = [column for column in range(len(names)) if column != target_column]
        y, classes = parse_targets(
            [row[target_column] for row in rows], location.name, table.lines, names[target_column]
        )
        return Examples(
            data_name=location.name,
            train={
                "x": reshape_rows(table.to_numbers(input_columns), network, location.name),
                "y": y,
            },
            classes=classes,
            columns=tuple(names[column].strip() for column in input_columns)
            if table.has_header
            else (),
            target=names[target_column].strip() if table.has_header else None,
        )


@dataclass(frozen=True)
class TableCells:
    """Cells of a table as text; a column is an index from 0, a line counts from 1."""

    file_name: str
    has_header: bool
    names: list[str]
    """Column names; without a header, column numbers from 1."""
    lines: list[int]
    """Line number of each row in the file."""
    rows: list[list[str]]
    """Without the header."""

    def to_numbers(self, columns: Sequence[int]) -> np.ndarray:
        """Selected columns as numbers, (rows, columns). Raises TaskError naming a wrong cell."""
        x = np.empty((len(self.rows), len(columns)))
        for row_index, row in enumerate(self.rows):
            for position, column in enumerate(columns):
                x[row_index, position] = parse_number(
                    row[column], self.file_name, self.lines[row_index], self.names[column]
                )
        return x


def read_cells(path: Path, columns: Sequence[str] = ()) -> TableCells:
    """Read all cells; blank lines are skipped.

    The first line is a header if it has non-numeric cells, a target name, or all of `columns`, the
    names of the columns that a network was trained on.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            first_line = file.readline()
            delimiter = SUFFIXES[path.suffix.lower()]
            if delimiter == "," and first_line.count(";") > first_line.count(","):
                delimiter = ";"
            reader = csv.reader(chain([first_line], file), delimiter=delimiter)
            numbered_rows = [
                (reader.line_num, row) for row in reader if any(cell.strip() for cell in row)
            ]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise TaskError(f"{path.name} cannot be read: {error}") from None
    if not numbered_rows:
        raise TaskError(f"{path.name}: there are no examples; the file is empty")
    first_row = numbered_rows[0][1]
    width = len(first_row)
    # The last cell may be a class name, so it does not show a header unless it is the only one.
    has_header = (
        not all(map(_is_number, first_row[:-1] or first_row))
        or is_target_column(first_row[-1])
        or (bool(columns) and set(columns) <= {cell.strip() for cell in first_row})
    )
    body_rows = numbered_rows[1:] if has_header else numbered_rows
    if not body_rows:
        raise TaskError(f"{path.name}: there are no examples below the header")
    for line, row in body_rows:
        if len(row) != width:
            raise TaskError(
                f"{path.name}: line {line} has {len(row)} cells, the first line has {width}"
            )
    names = first_row if has_header else [str(column + 1) for column in range(width)]
    return TableCells(
        path.name, has_header, names, [line for line, _ in body_rows], [row for _, row in body_rows]
    )


def is_target_column(name: str) -> bool:
    """Whether a column has the name of a target."""
    return name.strip().lower() in TARGET_COLUMNS


def match_columns(table: TableCells, columns: Sequence[str], target: str | None) -> list[int]:
    """Indices in a table of the columns that a network was trained on, matched by name.

    `columns` and `target` are the names in the training data; the table may lack the target column.
    Raises TaskError for missing, unknown or duplicate columns.
    """
    names = [name.strip() for name in table.names]
    positions = [
        column
        for column, name in enumerate(names)
        if name in columns or not (name == target or is_target_column(name))
    ]
    table_columns = [names[column] for column in positions]
    if table_columns == list(columns):
        return positions
    missing = [name for name in columns if name not in table_columns]
    unknown = [name for name in table_columns if name not in columns]
    duplicates = [
        name
        for name in dict.fromkeys((*columns, *table_columns))
        if max(columns.count(name), table_columns.count(name)) > 1
    ]
    problems = []
    for name in missing:
        suggestion = suggest_name(name, unknown)
        problems.append(f"there is no column `{name}`" + (f" ({suggestion})" if suggestion else ""))
    problems += [f"the column `{name}` was not in the training data; remove it" for name in unknown]
    problems += [f"the column `{name}` appears twice" for name in duplicates]
    if problems:
        trained_columns = ", ".join(columns[:MAX_LISTED_COLUMNS]) + (
            " …" if len(columns) > MAX_LISTED_COLUMNS else ""
        )
        more_problems = (
            f" and {len(problems) - MAX_LISTED_COLUMNS} more"
            if len(problems) > MAX_LISTED_COLUMNS
            else ""
        )
        raise TaskError(
            f"{table.file_name}: {'; '.join(problems[:MAX_LISTED_COLUMNS])}{more_problems}. "
            f"The run was trained on: {trained_columns}"
        )
    return [names.index(name) for name in columns]


def parse_number(cell: str, data_name: str, line: int, column: str) -> float:
    """The finite number in a cell. Raises TaskError naming line and column."""
    if not _is_number(cell) or not np.isfinite(float(cell)):
        shown = f"`{cell.strip()[:40]}`" if cell.strip() else "an empty cell"
        raise TaskError(f"{data_name}: line {line}, column `{column}`: {shown} is not a number")
    return float(cell)


def parse_targets(
    column: list[str], data_name: str, lines: list[int], name: str
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Targets as numbers, or words as class indices with the sorted class names.

    `column` holds the cells of the target column, `lines` their line numbers, `name` its name.
    """
    if any(map(_is_number, column)):
        return np.array(
            [
                parse_number(cell, data_name, line, name)
                for line, cell in zip(lines, column, strict=True)
            ]
        ), ()
    words = [cell.strip() for cell in column]
    if "" in words:
        raise TaskError(
            f"{data_name}: line {lines[words.index('')]}, column `{name}`: the target is empty"
        )
    classes = sorted(set(words))
    class_indices = {word: index for index, word in enumerate(classes)}
    return np.array([class_indices[word] for word in words], dtype=np.int64), tuple(classes)


def _is_number(cell: str) -> bool:
    """Whether `float` accepts the text, NaN and infinity included."""
    try:
        float(cell)
    except ValueError:
        return False
    return True
