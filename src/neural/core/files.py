"""Writing files so that nothing is ever half written: aside, then in place of the old one; reading those of others."""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

SMALL = 1 << 26
"""Bytes of a file that is read whole without a thought: 64 MB."""


def read_small(path: Path, most: int = SMALL) -> bytes:
    """The bytes of a file that should be small; OSError where it is larger, or no file but a pipe or a device."""
    how = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)   # a pipe would wait for ever
    handle = os.open(path, how)
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, "it is no ordinary file", str(path))
        data = file.read(most + 1)
    if len(data) > most:
        raise OSError(errno.EFBIG, f"it has more than {most:,} bytes", str(path))
    return data


def read_start(path: Path, most: int) -> str:
    """The text of a file, at most so many bytes of it: more is for the reader to refuse, as are bytes that are none."""
    with path.open("rb") as file:
        return file.read(most).decode("utf-8", errors="replace").replace("\r\n", "\n").replace("\r", "\n")


def write_atomically(path: Path, text: str, *, durable: bool = True) -> None:
    """The whole text or the old file, never anything between; the file's mode stays."""
    with replacing(path, durable=durable) as file:
        file.write(text.encode("utf-8"))


@contextmanager
def replacing(path: Path, *, durable: bool = True) -> Iterator[BinaryIO]:
    """A file written aside that takes the place of `path` when the block ends well; else nothing has changed.

    `durable`: also after a power cut, not only after a kill. Costs two waits for the disk. What is no file, such as
    /dev/stdout, keeps its place: it is written to.
    """
    if is_device(path):
        with path.open("wb") as file:
            yield file
        return
    handle, aside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            if durable:
                os.fsync(file.fileno())
        mode = path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~_umask()
        Path(aside).chmod(mode)
        Path(aside).replace(path)
    except BaseException:
        with suppress(OSError):   # the first failure is the one to tell
            Path(aside).unlink(missing_ok=True)
        raise
    if durable:
        sync_folder(path.parent)


def is_device(path: Path) -> bool:
    """Whether something is there that no file may take the place of: a device, a pipe, a name of this process' own."""
    return path.exists() and not path.is_dir() and (not path.is_file() or _among_devices(path.absolute()))


def _among_devices(path: Path) -> bool:
    return path.is_relative_to("/dev") and not path.is_relative_to("/dev/shm")   # in there are files as everywhere


def sync_folder(folder: Path) -> None:
    """Wait until the names in the folder, new, changed and gone, are on the disk."""
    if not hasattr(os, "O_DIRECTORY"):   # not where folders cannot be opened
        return
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
