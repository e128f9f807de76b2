"""Types of metadata entries of a run: which JSON values a key accepts.

A task declares the types of its own keys in `Task.metadata_fields`. `runs/metadata_schema.py`
checks values against them when they are written and when they are read. All ready-made types accept
`None`: it means that the value is unknown.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

MAX_COUNT = 1 << 53
"""Largest accepted integer. JavaScript, which draws the pages, cannot represent larger ones."""
ValueCheck = Callable[[Any], bool]
"""Function from a JSON value to whether it is accepted."""


class MetadataField(NamedTuple):
    """Type of one metadata entry."""

    accepts: ValueCheck
    expected: str
    """Description of the accepted values, after "must be"."""


def is_count(value: Any) -> bool:
    """Whether a value is an integer from 0 to MAX_COUNT, or None."""
    return value is None or (type(value) is int and 0 <= value <= MAX_COUNT)


def is_number(value: Any) -> bool:
    """Whether a value is a float, an integer that JavaScript can represent, or None."""
    is_exact = type(value) is int and abs(value) <= MAX_COUNT
    return value is None or isinstance(value, float) or is_exact


def is_text(value: Any) -> bool:
    """Whether a value is a string."""
    return isinstance(value, str)


def list_of(check: ValueCheck) -> ValueCheck:
    """A check for lists whose items all pass `check`, and None."""
    return lambda value: value is None or (isinstance(value, list) and all(map(check, value)))


def mapping_of(check: ValueCheck) -> ValueCheck:
    """A check for JSON objects whose values all pass `check`, and None."""
    return lambda value: (
        value is None or (isinstance(value, dict) and all(map(check, value.values())))
    )


def _is_texts_by_step(value: Any) -> bool:
    """Whether a value is a JSON object from steps, as decimal strings, to strings; or None."""
    # At most 15 digits: such a step is exact in JavaScript.
    return mapping_of(is_text)(value) and all(
        key.isdecimal() and len(key) < 16 for key in value or ()
    )


COUNT = MetadataField(is_count, "a whole number of 0 or more")
NUMBER = MetadataField(is_number, "a number")
TEXT = MetadataField(lambda value: value is None or is_text(value), "a text")
COUNTS = MetadataField(list_of(is_count), "a list of whole numbers of 0 or more")
TEXTS = MetadataField(list_of(is_text), "a list of texts")
NUMBERS_BY_NAME = MetadataField(mapping_of(is_number), "a mapping of names to numbers")
TEXTS_BY_STEP = MetadataField(_is_texts_by_step, "a mapping of steps to texts")
