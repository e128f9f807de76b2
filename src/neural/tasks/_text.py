"""The text that a language model learns: a known name, a file, or a folder of files. Read in pieces, never whole."""

from __future__ import annotations

import codecs
import io
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Literal

import numpy as np

from neural.tasks.data.downloads import DOWNLOADS, fetch
from neural.tasks.data.find import locate
from neural.tasks.data.sources.handbook import handbook_text
from neural.tasks.task import TaskError

Units = Literal["characters", "bytes"]
State = list[tuple[str, int, int]]
NAMES = ("handbook", *DOWNLOADS)
"""Texts that are known by name."""
IN_BYTES = ("enwik8",)
"""Known texts that are read as bytes unless somebody says otherwise, as everybody does who publishes figures."""
SEPARATOR = b"\n\n"
"""Between two files of a folder: a blank line."""
PIECE = 1 << 22
"""Bytes read at once."""
LOOKED_AT = 8000
"""Bytes of a file in a folder that are searched for a zero: what has one is no text (git's rule)."""


@dataclass(frozen=True)
class Text:
    """One text, in one or several parts."""

    name: str
    """What messages call it."""
    said: str
    """How settings write it, so that it is found again from any folder."""
    units: Units
    parts: tuple[Path | bytes, ...]
    """Files, in their order, or what is in memory."""
    remarks: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """In bytes."""
        return sum(size for _, size, _ in self.state()) + len(SEPARATOR) * (len(self.parts) - 1)

    def state(self) -> State:
        """Name, size and time of every part: while these stay, the text does."""
        found: State = []
        for part in self.parts:
            if isinstance(part, bytes):
                found.append(("", len(part), 0))
                continue
            try:
                about = part.stat()
            except OSError as problem:
                raise _unreadable(part, problem) from None
            found.append((str(part), about.st_size, about.st_mtime_ns))
        return found

    def codes(self) -> Iterator[np.ndarray]:
        """Piece after piece: bytes as they are, or the code points of characters, line ends as `\\n`."""
        for number, part in enumerate(self.parts):
            pieces = _raw(part)
            if number:
                yield from _bytes(iter([SEPARATOR])) if self.units == "bytes" else _characters(iter([SEPARATOR]), "")
            yield from _bytes(pieces) if self.units == "bytes" else _characters(pieces, self._called(part))

    def _called(self, part: Path | bytes) -> str:
        """What messages call a part."""
        if isinstance(part, bytes) or len(self.parts) == 1:
            return self.name
        return f"{self.name}/{part.relative_to(self.said).as_posix()}"


def find_text(data: str, folder: Path, units: Units | None) -> Text:
    """What the user wrote as `data` → the text; TaskError where there is none. Paths are seen from `folder`."""
    where = locate(data, folder)
    if isinstance(where, str):
        if where not in NAMES:
            raise TaskError(f"`{where}` is no text; known by name are {', '.join(NAMES)}; `./{where}` is a file")
        units = units or ("bytes" if where in IN_BYTES else "characters")
        part = handbook_text().encode() if where == "handbook" else fetch(where)
        return Text(where, where, units, (part,))
    assert isinstance(where, Path)
    units = units or "characters"
    if not where.is_dir():
        return Text(where.name, str(where), units, (where,))
    files = sorted(
        one for one in where.rglob("*")
        if one.is_file() and not any(part.startswith(".") for part in one.relative_to(where).parts)
    )  # fmt: skip
    binary = [one for one in files if units == "characters" and _is_binary(one)]
    kept = tuple(one for one in files if one not in set(binary))
    if not kept:
        raise TaskError(f"{where.name} has no text files" + (f", only {_listed(binary)}" if binary else ""))
    remarks = (f"{where.name}: {_listed(binary)} left out: no text",) if binary else ()
    return Text(where.name, str(where), units, kept, remarks)


def _raw(part: Path | bytes) -> Iterator[bytes]:
    if isinstance(part, bytes):
        yield part
        return
    try:
        with part.open("rb") as file:
            while piece := file.read(PIECE):
                yield piece
    except OSError as problem:
        raise _unreadable(part, problem) from None


def _bytes(pieces: Iterator[bytes]) -> Iterator[np.ndarray]:
    for piece in pieces:
        yield np.frombuffer(piece, dtype=np.uint8)


def _characters(pieces: Iterator[bytes], name: str) -> Iterator[np.ndarray]:
    decoder = codecs.getincrementaldecoder("utf-8")()
    lines = io.IncrementalNewlineDecoder(decoder, translate=True)
    read = 0
    for piece in chain(pieces, [b""]):
        before = read - len(decoder.getstate()[0])   # a character may begin in one piece and end in the next
        try:
            text = lines.decode(piece, final=not piece)
        except UnicodeDecodeError as wrong:
            raise _not_utf8(name, wrong, before) from None
        if before == 0:
            text = text.removeprefix("\ufeff")   # Windows begins a file with a mark that is no text
        read += len(piece)
        yield np.frombuffer(text.encode("utf-32-le"), dtype=np.uint32)


def _not_utf8(name: str, wrong: UnicodeDecodeError, before: int) -> TaskError:
    place, value = before + wrong.start, wrong.object[wrong.start]
    return TaskError(
        f"{name} is not UTF-8: byte {place:,} is 0x{value:02x}; "
        "save it as UTF-8, or write `units: bytes` to learn its bytes"
    )


def _is_binary(file: Path) -> bool:
    try:
        with file.open("rb") as opened:
            return b"\0" in opened.read(LOOKED_AT)
    except OSError as problem:
        raise _unreadable(file, problem) from None


def _listed(files: list[Path]) -> str:
    more = f" and {len(files) - 3} more" if len(files) > 3 else ""
    return ", ".join(one.name for one in files[:3]) + more


def _unreadable(path: Path, problem: OSError) -> TaskError:
    return TaskError(f"{path} cannot be read: {(problem.strerror or str(problem)).lower()}")
