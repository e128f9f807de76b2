"""A document per line as JSON: `{"lines": [...], "labels": [...]}`, or with `boundaries` in place of labels."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from neural.core.names import did_you_mean
from neural.core.plain_json import read_json
from neural.tasks.cutting.document import Document
from neural.tasks.cutting.reader import Reader, Reading
from neural.tasks.cutting.reading import read_raw
from neural.tasks.task import TaskError


class Jsonl(Reader):
    """`lines` are the elements; `labels` a word or a number each; `boundaries` true or 1 where a part begins, or the
    numbers of the elements that begin one, counted from 0."""

    looks: ClassVar[str] = "songs.jsonl: a document per line, with `lines` and `labels` or `boundaries`"
    suffixes: ClassVar[tuple[str, ...]] = (".jsonl", ".ndjson")

    @classmethod
    def read(cls, path: Path, reading: Reading) -> tuple[list[Document], list[str]]:
        """Every line that is not blank; a broken one is named by its number."""
        raw = read_raw(path)
        lines = enumerate(raw.text.removeprefix("\ufeff").split("\n"), start=1)
        found = [_document(line, f"{path.name}, line {at}", reading) for at, line in lines if line.strip()]
        return found, list(raw.remarks)


def _document(line: str, where: str, reading: Reading) -> Document:
    try:
        row = read_json(line)
    except ValueError as wrong:
        place = f" at column {wrong.colno}: {wrong.msg.lower()}" if isinstance(wrong, json.JSONDecodeError) else ""
        raise TaskError(f"{where} is no JSON{place}") from None
    if not isinstance(row, dict):
        raise TaskError(f"{where} must be an object with `lines` and `labels` or `boundaries`, it is {_kind(row)}")
    lines = row.get("lines")
    if not isinstance(lines, list) or not all(isinstance(one, str) for one in lines):
        help_ = did_you_mean("lines", row) if lines is None else None
        raise TaskError(f"{where}: `lines` must be a list of texts; {help_ or f'it is {_kind(lines)}'}")
    if not lines:
        raise TaskError(f"{where}: `lines` is empty; remove the document")
    name = str(row.get("name") or row.get("title") or row.get("id") or where)
    elements = tuple(" ".join(one.split()) for one in lines)
    if not reading.judged:
        return Document(name, elements)
    if row.get("labels") is not None:
        return Document(name, elements, labels=_labels(row["labels"], len(lines), where, reading.labels))
    if row.get("boundaries") is not None:
        return Document(name, elements, boundaries=_boundaries(row["boundaries"], len(lines), where))
    help_ = did_you_mean("labels", row) or did_you_mean("boundaries", row) or f"there are {', '.join(map(repr, row))}"
    raise TaskError(f"{where}: neither `labels` nor `boundaries` tells the parts; {help_}")


def _labels(given: Any, count: int, where: str, names: dict[str, int]) -> np.ndarray:
    _check(given, "labels", count, where)
    if all(type(one) is int and abs(one) < 1 << 31 for one in given):
        return np.array(given, dtype=np.int64)
    for place, one in enumerate(given, start=1):
        if not isinstance(one, str):
            raise TaskError(f"{where}: label {place} is {_kind(one)}; labels are all words or all whole numbers")
    return np.array([names.setdefault(one, len(names)) for one in given], dtype=np.int64)


def _boundaries(given: Any, count: int, where: str) -> np.ndarray:
    whole = isinstance(given, list) and all(type(one) in (bool, int) for one in given)
    if whole and len(given) == count and all(one in (0, 1) for one in given):
        return np.array(given, dtype=bool)
    if not whole or any(type(one) is bool for one in given):
        _check(given, "boundaries", count, where)
        raise TaskError(f"{where}: `boundaries` must be true and false, or numbers of lines, counted from 0")
    for one in given:
        if not 0 <= one < count:
            raise TaskError(f"{where}: boundary {one} is no line: {count} lines are numbered 0 to {count - 1}")
    found = np.zeros(count, dtype=bool)
    found[given] = True
    return found


def _check(given: Any, what: str, count: int, where: str) -> None:
    if not isinstance(given, list):
        raise TaskError(f"{where}: `{what}` must be a list, it is {_kind(given)}")
    if len(given) != count:
        raise TaskError(f"{where} has {count} lines and {len(given)} {what}: there must be one for every line")


def _kind(value: Any) -> str:
    kinds = {dict: "an object", list: "a list", str: "a text", bool: "true or false", type(None): "not there"}
    return kinds.get(type(value), "a number")
