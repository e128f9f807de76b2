"""What a run may say about its numbers (`run.describe`), key by key: a folder may come from anybody, and those who read
it take lists for lists. Keys that are not here are for their own readers to check.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from neural.core.plain_json import read_json

MOST = 1 << 53
"""Counts beyond this one are nobody's."""


def _count(value: Any) -> bool:
    return value is None or (type(value) is int and 0 <= value <= MOST)


def _number(value: Any) -> bool:
    return value is None or isinstance(value, float) or (type(value) is int and abs(value) <= MOST)


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _list(of: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or (isinstance(value, list) and all(map(of, value)))


def _named(of: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or (isinstance(value, dict) and all(map(of, value.values())))


def _vocabulary(value: Any) -> bool:
    return value == "bytes" or _list(_text)(value)


def _texts_by_step(value: Any) -> bool:
    return _named(_text)(value) and all(key.isdecimal() and len(key) < 16 for key in value or ())


KINDS: dict[str, Callable[[Any], bool]] = {
    "steps": _count, "epoch": _number, "parameters": _count, "attention/layers": _list(_text),
    "attention/heads": _list(_count), "attention/measures": _named(_named(_text)), "probe/labels": _list(_list(_text)),
    "generation/texts": _texts_by_step, "generation/real": _named(_number), "vocabulary": _vocabulary,
    "captions/places": _list(_count), "focus/classes": _list(_text),
}  # fmt: skip


def said(rows: Iterable[tuple[Any, Any]]) -> dict[str, Any]:
    """Values by key from their JSON; ValueError where one is of another kind than readers take it for."""
    found = {str(key): read_json(value) for key, value in rows}
    for key, value in found.items():
        if key in KINDS and not KINDS[key](value):
            raise ValueError(f"what it says of `{key}` is nothing that a run says")
    return found
