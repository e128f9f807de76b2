"""The text of a file, whatever wrote it: UTF-8, UTF-16 or -32 with its mark, or bytes that are taken for Latin-1."""

from __future__ import annotations

import codecs
from dataclasses import dataclass
from pathlib import Path

from neural.tasks.task import TaskError

_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"), (codecs.BOM_UTF32_BE, "utf-32-be"),   # the first begins as UTF-16's does
    (codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"),
)  # fmt: skip
LOOKED_AT = 8000
"""Bytes that are searched for a zero: what has one is no text (git's rule)."""


@dataclass(frozen=True)
class Raw:
    """A text as it stands in its file: line ends, tabs and a byte order mark included."""

    name: str
    text: str
    encoding: str
    remarks: tuple[str, ...] = ()

    def encode(self) -> bytes:
        """The file again, byte for byte."""
        return self.text.encode(self.encoding)


def read_raw(path: Path) -> Raw:
    """The text of a file; TaskError where it cannot be read, is empty, or is no text."""
    try:
        with path.open("rb") as file:
            start = file.read(LOOKED_AT)
            encoding_of(start, path.name)   # before the rest is read, which of a device has no end
            return decode(start + file.read(), path.name)
    except OSError as problem:
        raise TaskError(f"{path} cannot be read: {(problem.strerror or str(problem)).lower()}") from None


def decode(data: bytes, name: str) -> Raw:
    """The text of bytes that came from anywhere; `name` is what messages call it."""
    encoding = encoding_of(data, name)
    try:
        raw = Raw(name, data.decode(encoding or "utf-8"), encoding or "utf-8")
    except UnicodeDecodeError as wrong:
        if encoding is not None:
            told = f"{name} begins as {encoding} and is broken at byte {wrong.start:,}; save it anew"
            raise TaskError(told) from None
        told = f"{name} is not UTF-8 (byte {wrong.start:,}): read as Latin-1"
        raw = Raw(name, data.decode("latin-1"), "latin-1", (told,))
    if not raw.text.strip().strip("\ufeff"):
        raise TaskError(f"{name} is empty: there is nothing to cut")
    return raw


def encoding_of(data: bytes, name: str) -> str | None:
    """As the mark at the beginning says, if there is one; TaskError where it is no text."""
    encoding = next((kind for mark, kind in _MARKS if data.startswith(mark)), None)
    if encoding in (None, "utf-8") and b"\0" in data[:LOOKED_AT]:
        raise TaskError(f"{name} is no text: it has zero bytes; convert it to plain text first")
    return encoding
