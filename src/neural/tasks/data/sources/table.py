"""A table in a text file: a row per example, numbers in its columns, one column with the answer."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from neural.core.names import did_you_mean
from neural.tasks.data.shaping import shaped
from neural.tasks.data.source import Examples, Source, Where
from neural.tasks.task import TaskError

if TYPE_CHECKING:
    from neural.language.network import Network

SUFFIXES = {".csv": ",", ".tsv": "\t"}
ANSWERS = ("label", "target", "y")
"""What the column with the answer may be called; else it is the last one."""
MAX_LISTED = 8
"""Columns, or problems with columns, that a message names."""


class Table(Source):
    """CSV or TSV, with or without a line of names; words in the answers become classes, sorted."""

    looks: ClassVar[str] = "table.csv: numbers, and the answer in the last column or in one named label, target or y"

    @classmethod
    def fits(cls, where: Where) -> bool:
        """By its suffix."""
        return isinstance(where, Path) and where.suffix.lower() in SUFFIXES

    @classmethod
    def read(cls, where: Path, network: Network) -> Examples:
        """Every row, and where it stands for messages."""
        table = read_cells(where)
        names, rows = table.names, table.rows
        if len(names) < 2:
            raise TaskError(f"{where.name} has one column; it needs at least one number and the answer")
        answer = next((at for at, name in enumerate(names) if is_answer(name)), len(names) - 1)
        inputs = [at for at in range(len(names)) if at != answer]
        y, classes = answers([row[answer] for row in rows], where.name, table.lines, names[answer])
        return Examples(
            where=where.name,
            train={"x": shaped(table.numbers(inputs), network, where.name), "y": y},
            classes=classes,
            columns=tuple(names[at].strip() for at in inputs) if table.has_header else (),
            target=names[answer].strip() if table.has_header else None,
        )


@dataclass(frozen=True)
class Cells:
    """The cells of a table as text."""

    file: str
    has_header: bool
    names: list[str]
    """Of the columns; their numbers from 1 where there is no header."""
    lines: list[int]
    """The line of the file that each row stands in."""
    rows: list[list[str]]

    def numbers(self, columns: Sequence[int]) -> np.ndarray:
        """Some columns as numbers, (rows, columns); TaskError names the cell that is none."""
        x = np.empty((len(self.rows), len(columns)))
        for number, row in enumerate(self.rows):
            for place, column in enumerate(columns):
                x[number, place] = value(row[column], self.file, self.lines[number], self.names[column])
        return x


def read_cells(path: Path, columns: Sequence[str] = ()) -> Cells:
    """All cells. A first line of names is a header; so is one that holds the expected `columns`, in any order."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            first = file.readline()
            comma = ";" if SUFFIXES[path.suffix.lower()] == "," and first.count(";") > first.count(",") else None
            reader = csv.reader(chain([first], file), delimiter=comma or SUFFIXES[path.suffix.lower()])
            numbered = [(reader.line_num, row) for row in reader if any(cell.strip() for cell in row)]
    except (OSError, UnicodeDecodeError, csv.Error) as problem:
        raise TaskError(f"{path.name} cannot be read: {problem}") from None
    if not numbered:
        raise TaskError(f"{path.name}: there are no examples; the file is empty")
    head = numbered[0][1]
    width = len(head)
    # the last cell may be a class in words, so it tells nothing where there are others
    has_header = (
        not all(map(_is_number, head[:-1] or head)) or is_answer(head[-1])
        or (bool(columns) and set(columns) <= {cell.strip() for cell in head})
    )  # fmt: skip
    body = numbered[1:] if has_header else numbered
    if not body:
        raise TaskError(f"{path.name}: there are no examples below the names of the columns")
    for line, row in body:
        if len(row) != width:
            raise TaskError(f"{path.name}: line {line} has {len(row)} cells, the first line has {width}")
    names = head if has_header else [str(at + 1) for at in range(width)]
    return Cells(path.name, has_header, names, [line for line, _ in body], [row for _, row in body])


def is_answer(name: str) -> bool:
    """Whether a column is called like one that holds the answer."""
    return name.strip().lower() in ANSWERS


def match_columns(table: Cells, columns: Sequence[str], target: str | None) -> list[int]:
    """Where the columns that a network was trained on stand in a table, found by their names.

    The column with the answer may be there or not. TaskError where a column is missing, unknown or there twice.
    """
    names = [name.strip() for name in table.names]
    positions = [at for at, name in enumerate(names) if name in columns or not (name == target or is_answer(name))]
    given = [names[at] for at in positions]
    if given == list(columns):
        return positions
    missing = [name for name in columns if name not in given]
    unknown = [name for name in given if name not in columns]
    twice = [name for name in dict.fromkeys((*columns, *given)) if max(columns.count(name), given.count(name)) > 1]
    problems = []
    for name in missing:
        guess = did_you_mean(name, unknown)
        problems.append(f"there is no column `{name}`" + (f" ({guess})" if guess else ""))
    problems += [f"the column `{name}` was not in the training data; remove it" for name in unknown]
    problems += [f"the column `{name}` is there twice" for name in twice]
    if problems:
        shown = ", ".join(columns[:MAX_LISTED]) + (" …" if len(columns) > MAX_LISTED else "")
        more = f" and {len(problems) - MAX_LISTED} more" if len(problems) > MAX_LISTED else ""
        raise TaskError(f"{table.file}: {'; '.join(problems[:MAX_LISTED])}{more}. The run was trained on: {shown}")
    return [names.index(name) for name in columns]


def value(cell: str, where: str, line: int, column: str) -> float:
    """A finite number."""
    if not _is_number(cell) or not np.isfinite(float(cell)):
        shown = f"`{cell.strip()[:40]}`" if cell.strip() else "an empty cell"
        raise TaskError(f"{where}: line {line}, column `{column}`: {shown} is not a number")
    return float(cell)


def answers(column: list[str], where: str, lines: list[int], name: str) -> tuple[np.ndarray, tuple[str, ...]]:
    """Numbers, or words as class numbers with what they stand for."""
    if any(map(_is_number, column)):
        return np.array([value(cell, where, line, name) for line, cell in zip(lines, column, strict=True)]), ()
    words = [cell.strip() for cell in column]
    if "" in words:
        raise TaskError(f"{where}: line {lines[words.index('')]}, column `{name}`: there is no answer")
    classes = sorted(set(words))
    numbers = {word: number for number, word in enumerate(classes)}
    return np.array([numbers[word] for word in words], dtype=np.int64), tuple(classes)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
