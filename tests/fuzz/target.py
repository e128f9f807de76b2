"""What a fuzzed kind of file is: good ones to begin with, a reader, and the errors by which it may refuse."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

Seeds = Callable[[], Sequence[bytes]]


@dataclass(frozen=True)
class Target:
    """One kind of file that may come from anybody."""

    read: Callable[[bytes], object]
    """Does all that the product does with such a file."""
    seeds: Seeds
    refusals: tuple[type[Exception], ...]
    """What may be raised: errors that are shown to users as messages."""
    words: tuple[bytes, ...] = ()
    """Pieces that mean something in this kind of file."""

    def outcome(self, data: bytes) -> str:
        """Why the file was refused, or nothing; any other error passes through."""
        try:
            self.read(data)
        except self.refusals as refused:
            return f"{type(refused).__name__}: {refused}"
        return ""


@cache
def room() -> Path:
    """A folder of this process for what must be a file, in memory where there is such a place."""
    shared = Path("/dev/shm")
    place = tempfile.TemporaryDirectory(prefix="fuzz-", dir=shared if shared.is_dir() else None)
    _kept.append(place)
    return Path(place.name)


_kept: list[tempfile.TemporaryDirectory[str]] = []


def tidy() -> None:
    """Remove that folder; it goes by itself unless the process is ended at once."""
    for one in _kept:
        one.cleanup()


def file(name: str, data: bytes) -> Path:
    """The bytes under that name."""
    path = room() / name
    path.write_bytes(data)
    return path
