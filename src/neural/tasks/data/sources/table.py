"""A table in a text file: a row per example, numbers in its columns, one column with the answer."""

from __future__ import annotations

import csv
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from neural.tasks.data.shaping import shaped
from neural.tasks.data.source import Examples, Source, Where
from neural.tasks.task import TaskError

if TYPE_CHECKING:
    from neural.language.network import Network

SUFFIXES = {".csv": ",", ".tsv": "\t"}
ANSWERS = ("label", "target", "y")
"""What the column with the answer may be called; else it is the last one."""


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
        names, lines, rows = cells(where)
        answer = next((place for place, name in enumerate(names) if name.strip().lower() in ANSWERS), len(names) - 1)
        inputs = [place for place in range(len(names)) if place != answer]
        x = np.empty((len(rows), len(inputs)))
        for number, row in enumerate(rows):
            for column, place in enumerate(inputs):
                x[number, column] = value(row[place], where.name, lines[number], names[place])
        y, classes = answers([row[answer] for row in rows], where.name, lines, names[answer])
        return Examples(where=where.name, train={"x": shaped(x, network, where.name), "y": y}, classes=classes)


def cells(path: Path) -> tuple[list[str], list[int], list[list[str]]]:
    """The names of the columns, and the rows with the numbers of their lines."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            first = file.readline()
            comma = ";" if SUFFIXES[path.suffix.lower()] == "," and first.count(";") > first.count(",") else None
            reader = csv.reader(chain([first], file), delimiter=comma or SUFFIXES[path.suffix.lower()])
            found = [(reader.line_num, row) for row in reader if any(cell.strip() for cell in row)]
    except (OSError, UnicodeDecodeError, csv.Error) as problem:
        raise TaskError(f"{path.name} cannot be read: {problem}") from None
    if not found:
        raise TaskError(f"{path.name}: there are no examples; the file is empty")
    width = len(found[0][1])
    named = not all(map(_is_number, found[0][1][:-1])) or found[0][1][-1].strip().lower() in ANSWERS
    names = found[0][1] if named else [str(place + 1) for place in range(width)]
    rows = found[1:] if named else found
    if width < 2:
        raise TaskError(f"{path.name} has one column; it needs at least one number and the answer")
    if not rows:
        raise TaskError(f"{path.name}: there are no examples below the names of the columns")
    for line, row in rows:
        if len(row) != width:
            raise TaskError(f"{path.name}: line {line} has {len(row)} cells, the first line has {width}")
    return names, [line for line, _ in rows], [row for _, row in rows]


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
