"""What a run may describe itself with (`run.describe`), key by key.

Writers are refused a value that no reader could read. Readers check again, because a folder may come from anybody: an
entry of another shape is left out with a warning, and the rest of the run is shown. Keys that are not listed here may
hold any JSON; their own readers check them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from neural.core.plain_json import read_json

MAX_COUNT = 1 << 53
"""Larger integers are not exact in JavaScript, which draws the pages."""
Check = Callable[[Any], bool]


class Entry(NamedTuple):
    """What one key takes."""

    accepts: Check
    expected: str
    """In words, after "must be"."""


def _is_count(value: Any) -> bool:
    return value is None or (type(value) is int and 0 <= value <= MAX_COUNT)


def _is_number(value: Any) -> bool:
    return value is None or isinstance(value, float) or (type(value) is int and abs(value) <= MAX_COUNT)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _list_of(check: Check) -> Check:
    return lambda value: value is None or (isinstance(value, list) and all(map(check, value)))


def _mapping_of(check: Check) -> Check:
    return lambda value: value is None or (isinstance(value, dict) and all(map(check, value.values())))


def _is_vocabulary(value: Any) -> bool:
    return value == "bytes" or _list_of(_is_text)(value)


def _is_texts_by_step(value: Any) -> bool:
    return _mapping_of(_is_text)(value) and all(key.isdecimal() and len(key) < 16 for key in value or ())


COUNT = Entry(_is_count, "a whole number of 0 or more")
NUMBER = Entry(_is_number, "a number")
COUNTS = Entry(_list_of(_is_count), "a list of whole numbers of 0 or more")
TEXTS = Entry(_list_of(_is_text), "a list of texts")
ENTRIES: dict[str, Entry] = {
    "steps": COUNT,
    "epoch": NUMBER,
    "parameters": COUNT,
    "attention/layers": TEXTS,
    "attention/heads": COUNTS,
    "attention/measures": Entry(
        _mapping_of(_mapping_of(_is_text)), "a mapping of measures to mappings of texts (`unit`, `says`)"
    ),
    "probe/labels": Entry(_list_of(_list_of(_is_text)), "a list of lists of texts, one list per example"),
    "generation/texts": Entry(_is_texts_by_step, "a mapping of steps to texts"),
    "generation/real": Entry(_mapping_of(_is_number), "a mapping of names to numbers"),
    "vocabulary": Entry(_is_vocabulary, 'a list of texts, or "bytes"'),
    "captions/places": COUNTS,
    "data/columns": TEXTS,
    "data/target": Entry(lambda value: value is None or _is_text(value), "a text"),
    "data/classes": TEXTS,
    "data/document_hashes": Entry(
        _mapping_of(_list_of(_is_text)), "a mapping of `train` and `valid` to lists of texts"
    ),
    "data/shared_ngrams": NUMBER,
    "data/duplicate_examples": COUNT,
    "focus/classes": TEXTS,
}


def to_json(key: str, value: Any) -> str:
    """A described value as it is stored; ValueError where it is not JSON or no reader could read it."""
    try:
        text = json.dumps(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"`{key}` must be plain data that JSON can hold: {error}") from None
    if problem := _problem(key, json.loads(text)):   # as readers will see it: tuples are lists, keys are texts
        raise ValueError(f"{problem}, got {text if len(text) <= 60 else text[:60] + '…'}")
    return text


def read_metadata(rows: Iterable[tuple[Any, Any]]) -> tuple[dict[str, Any], dict[str, str]]:
    """Values by key from their JSON, and for every entry that cannot be used the reason."""
    values: dict[str, Any] = {}
    problems: dict[str, str] = {}
    for stored_key, text in rows:
        key = str(stored_key)
        try:
            value = read_json(text)
        except (ValueError, TypeError) as error:
            problems[key] = f"`{key}` is not JSON: {error}"
            continue
        if problem := _problem(key, value):
            problems[key] = problem
        else:
            values[key] = value
    return values, problems


def _problem(key: str, value: Any) -> str | None:
    entry = ENTRIES.get(key)
    return None if entry is None or entry.accepts(value) else f"`{key}` must be {entry.expected}"
