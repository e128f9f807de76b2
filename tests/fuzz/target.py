"""A fuzz target: valid seed files, a reader, and the errors by which it may refuse a file."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

Seeds = Callable[[], Sequence[bytes]]


@dataclass(frozen=True)
class Target:
    """One kind of untrusted file."""

    read: Callable[[bytes], object]
    """Does everything that the product does with such a file."""
    seeds: Seeds
    refusals: tuple[type[Exception], ...]
    """Expected errors: those that users see as messages."""
    words: tuple[bytes, ...] = ()
    """Tokens with a meaning in this kind of file."""

    def run(self, data: bytes) -> str:
        """The refusal as text, or ""; unexpected errors pass through."""
        try:
            self.read(data)
        except self.refusals as error:
            return f"{type(error).__name__}: {error}"
        return ""


@cache
def work_folder() -> Path:
    """A temporary folder of this process, in memory if possible."""
    shared_memory = Path("/dev/shm")
    folder = tempfile.TemporaryDirectory(
        prefix="fuzz-", dir=shared_memory if shared_memory.is_dir() else None
    )
    _folders.append(folder)
    return Path(folder.name)


_folders: list[tempfile.TemporaryDirectory[str]] = []


def remove_folders() -> None:
    """Remove the folders; needed only before `os._exit`."""
    for folder in _folders:
        folder.cleanup()


def write_file(name: str, data: bytes) -> Path:
    """Write the bytes to a file of that name in the work folder."""
    path = work_folder() / name
    path.write_bytes(data)
    return path
