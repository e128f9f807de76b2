"""Read a text file of any size in chunks, with the same encodings as `read_text` of reader.py."""

from __future__ import annotations

import codecs
import io
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from neural.core.errors import TaskError
from neural.core.files import format_read_error
from neural.tasks.segmentation.reader import BINARY_PROBE_BYTES, detect_encoding

CHUNK_BYTES = 1 << 18
MAX_MEMORY_BYTES = 1 << 24
"""Standard input beyond this size is kept in a temporary file."""


@dataclass(frozen=True)
class TextSource:
    """A text that can be read in chunks."""

    name: str
    """Used in messages."""
    encoding: str
    """Python's name of the encoding, such as `utf-8`."""
    size: int
    """Length in bytes."""
    notes: tuple[str, ...]
    """Warnings about the text."""
    open: Callable[[], BinaryIO]
    """The bytes, from the start."""

    def read_chunks(self, on_read: Callable[[int], None] = lambda size: None) -> Iterator[str]:
        """Texts of all chunks. Can be called once. `on_read` gets the number of bytes of each."""
        with self.open() as file:
            decoder = codecs.getincrementaldecoder(self.encoding)()
            while data := file.read(CHUNK_BYTES):
                on_read(len(data))
                yield decoder.decode(data)
            yield decoder.decode(b"", final=True)


def open_text_source(path: Path, name: str | None = None) -> TextSource:
    """A file as a source, by default with its own name. TaskError if it is unreadable or binary."""
    try:
        with path.open("rb") as file:
            if not path.is_file():  # a pipe can be read only once
                return spool_text_source(file, name or path.name)
            return _inspect(file, name or path.name, lambda: path.open("rb"))
    except OSError as error:
        raise TaskError(format_read_error(path, error)) from None


def spool_text_source(stream: BinaryIO, name: str) -> TextSource:
    """A stream that can be read only once, such as standard input, as a source."""
    start = stream.read(BINARY_PROBE_BYTES)
    # Refuse binary data before reading on: a device such as /dev/zero never ends.
    detect_encoding(start, name)
    spooled: Any = tempfile.SpooledTemporaryFile(MAX_MEMORY_BYTES)  # noqa: SIM115
    try:
        spooled.write(start)
        shutil.copyfileobj(stream, spooled, CHUNK_BYTES)
        spooled.seek(0)
        source = _inspect(spooled, name, lambda: spooled)
        spooled.seek(0)
    except BaseException:
        spooled.close()
        raise
    return source  # `read_chunks` closes the file


def make_text_source(text: str, name: str) -> TextSource:
    """A text in memory as a source. TaskError if it has zero bytes."""
    data = text.encode("utf-8", errors="replace")
    return _inspect(io.BytesIO(data), name, lambda: io.BytesIO(data))


def _inspect(file: BinaryIO, name: str, reopen: Callable[[], BinaryIO]) -> TextSource:
    """Find the encoding. Reads the file to its end, because its last byte may be invalid UTF-8."""
    start = file.read(BINARY_PROBE_BYTES)
    marked_encoding = detect_encoding(start, name)
    encoding = marked_encoding or "utf-8"
    decoder = codecs.getincrementaldecoder(encoding)()
    size, notes, data = 0, (), start
    # Bytes that the decoder still holds, so that an error can be located.
    held = 0
    is_valid = True
    while data:
        try:
            if is_valid:
                decoder.decode(data)
                held = len(decoder.getstate()[0])
        except UnicodeDecodeError as error:
            notes = (_describe_error(marked_encoding, name, size - held + error.start),)
            is_valid = False
        size += len(data)
        data = file.read(CHUNK_BYTES)
    try:
        if is_valid:
            decoder.decode(b"", final=True)
    except UnicodeDecodeError as error:
        notes = (_describe_error(marked_encoding, name, size - held + error.start),)
        is_valid = False
    return TextSource(name, encoding if is_valid else "latin-1", size, notes, reopen)


def _describe_error(marked_encoding: str | None, name: str, position: int) -> str:
    """Note about invalid UTF-8; TaskError if the file is marked as another encoding."""
    if marked_encoding is not None:
        raise TaskError(
            f"{name} begins as {marked_encoding} but is invalid at byte {position:,}; save it again"
        ) from None
    return f"{name} is not UTF-8 (byte {position:,}): read as Latin-1"
