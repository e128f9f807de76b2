"""Rows that anybody may have written: nothing in them runs when they are read, and nothing is larger than its file.

A SQLite file can hold views and triggers, which are programs; values that claim a gigabyte by leading from page to page
in a circle; and tables whose pages are said to be there many times. None of these is ever written by a run.
"""

from __future__ import annotations

import sqlite3
from typing import Any

import numpy as np

from neural.core.plain_json import read_json

ROOM = 1 << 20
"""Bytes that a value may have however small the file is; else no more than the file."""
WIDEST = 1 << 16
"""The size of an axis that an array may have however few its numbers are."""


def distrust(db: sqlite3.Connection, size: int) -> None:
    """Before anything else is asked of a file of that many bytes; ValueError where it holds more than rows."""
    db.text_factory = _text
    db.execute("PRAGMA trusted_schema = OFF")
    db.execute("PRAGMA cell_size_check = ON")
    db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, max(ROOM, size))
    for kind, sql in db.execute("SELECT type, sql FROM sqlite_master"):
        if kind not in ("table", "index"):
            raise ValueError(f"it holds a {kind}, which no run writes")
        if "VIRTUAL" in (sql or "").upper():
            raise ValueError("it holds a virtual table, which no run writes")


def no_more(rows: list[Any], size: int) -> list[Any]:
    """The rows, where they are fewer than the bytes of their file."""
    if len(rows) >= size:
        raise ValueError("it claims more rows than it has bytes")
    return rows


def array_of(shape: str, data: bytes) -> np.ndarray:
    """32-bit floats in their shape, a list in JSON."""
    sizes = read_json(shape)
    if any(type(one) is not int or not 0 <= one <= max(WIDEST, len(data)) for one in sizes):
        raise ValueError(f"an array of shape {shape[:40]}")
    return np.frombuffer(data, "<f4").reshape(sizes)


def _text(data: bytes) -> str:
    """What is no text stays visible as such."""
    return data.decode("utf-8", errors="replace")
