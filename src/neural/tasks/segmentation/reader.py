"""Base class of document readers (one file format each), and decoding of text files.

A document is a sequence of elements (sentences or lines), which form segments. Notes are warnings
for the user about a file, one sentence each.
"""

from __future__ import annotations

import codecs
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Literal

from neural.core.errors import TaskError, describe_os_error
from neural.tasks.segmentation.document import SegmentationDocument
from neural.tasks.segmentation.text_splitting import ElementUnit

BoundaryMarker = Literal["auto", "blank_lines", "headings"]
LayoutHandling = Literal["remove", "keep"]
"""Whether documents with titled parts keep headings and blank lines."""


@dataclass(frozen=True)
class ReaderOptions:
    """Options for reading files."""

    unit: ElementUnit = "sentences"
    """Whether the elements of a plain text are its lines or its sentences."""
    boundary_marker: BoundaryMarker = "auto"
    """What separates segments in plain text: blank lines, headings, or (`auto`) headings if a text
    has at least two, else blank lines."""
    layout: LayoutHandling = "remove"
    """Whether documents with titled parts (`parts` in .jsonl) keep headings and blank lines."""
    require_segments: bool = True
    """False: read the elements only, for prediction; labels and boundaries are ignored."""
    label_ids: dict[str, int] = field(default_factory=dict)
    """Id of each text label, numbered from 0 in order of appearance.

    Readers add new labels, so that all files read with the same options share the ids.
    """


class DocumentReader(ABC):
    """A file format that holds documents with known segments."""

    description: ClassVar[str]
    """For help texts and error messages."""
    suffixes: ClassVar[tuple[str, ...]]
    """File name endings in lower case, with the dot."""

    @classmethod
    @abstractmethod
    def read(
        cls, path: Path, options: ReaderOptions
    ) -> tuple[list[SegmentationDocument], list[str]]:
        """Documents of one file, and notes about it. TaskError if the file is broken."""


_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),  # before UTF-16, whose mark is a prefix of UTF-32-LE's
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
BINARY_PROBE_BYTES = 8000
"""Bytes that are searched for a zero byte; a file with one is binary (git's rule)."""


@dataclass(frozen=True)
class RawText:
    """Exact text of a file: line ends, tabs and byte order mark included."""

    name: str
    """Used in messages."""
    text: str
    encoding: str
    """Python's name of the encoding of the file, such as `utf-8`."""
    notes: tuple[str, ...] = ()
    """Warnings about the file."""

    def encode(self) -> bytes:
        """The bytes of the file."""
        return self.text.encode(self.encoding)


def read_text(path: Path) -> RawText:
    """Text of a file. TaskError if it cannot be read, is empty or is binary."""
    try:
        with path.open("rb") as file:
            start = file.read(BINARY_PROBE_BYTES)
            # Refuse binary data before reading on: a device such as /dev/zero never ends.
            detect_encoding(start, path.name)
            return decode_text(start + file.read(), path.name)
    except OSError as error:
        raise TaskError(f"{path} cannot be read: {describe_os_error(error)}") from None


def decode_text(data: bytes, name: str) -> RawText:
    """Text of bytes from any source; `name` is used in messages."""
    encoding = detect_encoding(data, name)
    try:
        raw = RawText(name, data.decode(encoding or "utf-8"), encoding or "utf-8")
    except UnicodeDecodeError as error:
        if encoding is not None:
            raise TaskError(
                f"{name} begins as {encoding} but is invalid at byte {error.start:,}; save it again"
            ) from None
        note = f"{name} is not UTF-8 (byte {error.start:,}): read as Latin-1"
        raw = RawText(name, data.decode("latin-1"), "latin-1", (note,))
    if not raw.text.strip().strip("\ufeff"):
        raise TaskError(f"{name} is empty: there is nothing to segment")
    return raw


def detect_encoding(data: bytes, name: str) -> str | None:
    """Encoding by the byte order mark; None without one. TaskError for binary data."""
    encoding = next((codec for mark, codec in _BYTE_ORDER_MARKS if data.startswith(mark)), None)
    # UTF-16 and UTF-32 encode every ASCII character with zero bytes.
    if encoding in (None, "utf-8") and b"\0" in data[:BINARY_PROBE_BYTES]:
        raise TaskError(
            f"{name} is not a text file: it has zero bytes; convert it to plain text first"
        )
    return encoding
