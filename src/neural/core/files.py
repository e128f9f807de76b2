"""Atomic file writes, and reads with a size limit."""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from difflib import SequenceMatcher
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from neural.core.diagnostics import MAX_SOURCE_CHARACTERS, SourceText
from neural.core.names import MAX_NAME_LENGTH, suggest_name

MAX_SMALL_FILE_BYTES = 1 << 26
"""Size limit of `read_small_file`: 64 MB."""
MAX_COMPARED_FILES = 1000
"""Files of a folder that `suggest_file` compares with a misspelt name."""
MIN_STEM_SIMILARITY = 0.5
"""Files whose name without suffix is less similar (0 to 1) are not suggested."""


def read_small_file(path: Path, max_bytes: int = MAX_SMALL_FILE_BYTES) -> bytes:
    """Read a file; OSError where it is larger than `max_bytes`, or a pipe or device."""
    # O_NONBLOCK: opening a pipe without a writer would block for ever.
    flags = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)
    descriptor = os.open(path, flags)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is no ordinary file", str(path))
        data = file.read(max_bytes + 1)
    if len(data) > max_bytes:
        raise OSError(errno.EFBIG, f"it has more than {max_bytes:,} bytes", str(path))
    return data


def suggest_file(path: Path) -> str | None:
    """A "did you mean" line for a file that does not exist, from the names in its folder."""
    try:
        names = [entry.name for entry in islice(os.scandir(path.parent), MAX_COMPARED_FILES)]
    except OSError:
        return None
    stem = path.stem[:MAX_NAME_LENGTH].lower()
    # equal suffixes alone make `a.csv` similar to `b.csv`
    similar = [
        name
        for name in names
        if not name.startswith(".")
        and SequenceMatcher(None, stem, Path(name).stem.lower()).ratio() >= MIN_STEM_SIMILARITY
    ]
    return suggest_name(path.name, similar)


def read_text_prefix(path: Path, max_bytes: int) -> str:
    """Read at most `max_bytes` of a text. Invalid UTF-8 becomes `�`, line endings become `\\n`."""
    with path.open("rb") as file:
        return (
            file.read(max_bytes)
            .decode("utf-8", errors="replace")
            .replace("\r\n", "\n")
            .replace("\r", "\n")
        )


def read_source_text(path: str | Path, name: str | None = None) -> SourceText:
    """The text of a program or YAML file. Raises OSError.

    `name` is that of the file in messages, by default its path. A text beyond the size limit is not
    read to its end, and invalid UTF-8 becomes `�`: the parsers report both as errors.
    """
    # A character has at most 4 bytes in UTF-8; the additional byte makes a longer text detectable.
    text = read_text_prefix(Path(path), 4 * MAX_SOURCE_CHARACTERS + 1)
    return SourceText(str(path) if name is None else name, text)


def write_atomically(path: Path, text: str, *, durable: bool = True) -> None:
    """Write a text: after a crash the file has the old or the new content, never a mixture."""
    with open_atomic(path, durable=durable) as file:
        file.write(text.encode("utf-8"))


@contextmanager
def open_atomic(path: Path, *, durable: bool = True) -> Iterator[BinaryIO]:
    """Write to a temporary file that replaces `path` when the block ends without an exception.

    `durable`: survives a power cut, not only a killed process; costs two fsyncs. A device or pipe,
    such as /dev/stdout, is written directly. The mode of an existing file is kept.
    """
    if is_device(path):
        with path.open("wb") as file:
            yield file
        return
    descriptor, temporary_path = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            if durable:
                os.fsync(file.fileno())
        mode = path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~_get_umask()
        Path(temporary_path).chmod(mode)
        Path(temporary_path).replace(path)
    except BaseException:
        with suppress(OSError):  # report the first failure, not this one
            Path(temporary_path).unlink(missing_ok=True)
        raise
    if durable:
        sync_folder(path.parent)


def is_file_name(text: str) -> bool:
    """Whether a text names an existing file; a text that is too long for a name does not."""
    try:
        return Path(text).is_file()
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:
            raise
        return False


def is_device(path: Path) -> bool:
    """Whether the path exists and must not be replaced by a file: a device, a pipe, /dev/fd/1."""
    return (
        path.exists() and not path.is_dir() and (not path.is_file() or _is_in_dev(path.absolute()))
    )


def _is_in_dev(path: Path) -> bool:
    # /dev/shm is a file system with ordinary files.
    return path.is_relative_to("/dev") and not path.is_relative_to("/dev/shm")


def sync_folder(folder: Path) -> None:
    """Flush the folder's entries (created, renamed, deleted names) to the disk."""
    if not hasattr(os, "O_DIRECTORY"):  # Windows cannot open folders
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _get_umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
