"""Atomic file writes, and reads with a size limit."""

from __future__ import annotations

import errno
import io
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from difflib import SequenceMatcher
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from neural.core import platform_support
from neural.core.diagnostics import MAX_SOURCE_CHARACTERS, SourceText
from neural.core.errors import describe_os_error
from neural.core.names import MAX_NAME_LENGTH, find_closest, suggest_name

MAX_SMALL_FILE_BYTES = 1 << 26
"""Size limit of `read_small_file`: 64 MB."""
MAX_PREFIX_BYTES = 100
"""Length to which a file's name is cut in the name of its temporary file."""
MAX_COMPARED_FILES = 1000
"""Files of a folder that `suggest_file` compares with a misspelt name."""
TEXT_FILE_SUFFIXES = (
    *(".txt", ".text", ".md", ".markdown", ".rst", ".adoc", ".org", ".html", ".htm", ".log"),
    *(".json", ".jsonl", ".csv", ".tsv", ".npy"),
)
"""Endings of a word that make it a file name where a text could be meant, too."""
MIN_STEM_SIMILARITY = 0.5
"""Files whose name without suffix is less similar (0 to 1) are not suggested."""


def get_file_size(path: Path) -> int | None:
    """Size in bytes; None without the file. One call: between two, another process may delete it."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return None


def open_ordinary_file(path: Path) -> io.BufferedReader:
    """Open a file to read bytes; OSError where it is a folder, pipe, socket or device.

    For files of folders that somebody else wrote: a pipe without a writer would block for ever.
    """
    descriptor = platform_support.open_without_blocking(path)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is no ordinary file", str(path))
    return os.fdopen(descriptor, "rb")


def read_small_file(path: Path, max_bytes: int = MAX_SMALL_FILE_BYTES) -> bytes:
    """Read a file; OSError where it is larger than `max_bytes`, or a pipe or device."""
    with open_ordinary_file(path) as file:
        data = file.read(max_bytes + 1)
    if len(data) > max_bytes:
        raise OSError(errno.EFBIG, f"it has more than {max_bytes:,} bytes", str(path))
    return data


def suggest_file(path: Path) -> str | None:
    """A "did you mean" line for a file or folder that does not exist, from the names beside it.

    If its folder does not exist either, the line is about the first folder that is missing.
    """
    missing = next((each for each in (path, *path.parents) if each.parent.is_dir()), path)
    try:
        names = [entry.name for entry in islice(os.scandir(missing.parent), MAX_COMPARED_FILES)]
    except OSError:
        return None
    stem = missing.stem[:MAX_NAME_LENGTH].lower()
    # equal suffixes alone make `a.csv` similar to `b.csv`
    similar = [
        name
        for name in names
        if not name.startswith(".")
        and SequenceMatcher(None, stem, Path(name).stem.lower()).ratio() >= MIN_STEM_SIMILARITY
    ]
    if missing == path:
        return suggest_name(path.name, similar)
    guess = find_closest(missing.name, similar)
    if guess is None:
        return None
    folder = missing.with_name(guess)
    complete = folder / path.relative_to(missing)
    return f"did you mean `{complete if complete.exists() else folder}`?"


def format_missing_file(path: str | Path) -> str:
    """Message for a file or folder that does not exist, with a guess of the name that is meant."""
    suggestion = suggest_file(Path(path))
    return f"there is no file {path}" + (f"; {suggestion}" if suggestion else "")


def format_read_error(path: Path, error: OSError) -> str:
    """`notes.txt cannot be read: permission denied`; for a missing file with a guess."""
    message = f"{path} cannot be read: {describe_os_error(error)}"
    suggestion = suggest_file(path) if isinstance(error, FileNotFoundError) else None
    return f"{message}; {suggestion}" if suggestion else message


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
    descriptor, temporary_name = tempfile.mkstemp(
        dir=path.parent, prefix=temporary_prefix(path.name)
    )
    temporary_path = Path(temporary_name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            if durable:
                platform_support.sync_file(file.fileno())
        mode = path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~_get_umask()
        temporary_path.chmod(mode)
        platform_support.replace_file(temporary_path, path)
    except BaseException:
        with suppress(OSError):  # report the first failure, not this one
            temporary_path.unlink(missing_ok=True)
        raise
    if durable:
        platform_support.sync_folder(path.parent)


def temporary_prefix(name: str) -> str:
    """Start of the hidden name under which a file or folder is written before it is renamed."""
    # cut: a name may have 255 bytes, and some random letters are added
    return f".{name.encode(errors='surrogateescape')[:MAX_PREFIX_BYTES].decode(errors='ignore')}."


def expand_home(path: str | Path) -> Path:
    """Replace `~` and `~user` at the start of a path. An unknown user's stays, as in a shell."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        return Path(path)


def is_file_name(text: str) -> bool:
    """Whether a text names an existing file; a text that is too long for a name does not."""
    try:
        return Path(text).is_file()
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:
            raise
        return False


def looks_like_file_name(text: str) -> bool:
    """Whether a text is one word with a slash, or with an ending such as `.txt`."""
    if not text or len(text.split()) > 1 or text != text.strip():
        return False
    return "/" in text or os.sep in text or Path(text).suffix.lower() in TEXT_FILE_SUFFIXES


def is_device(path: Path) -> bool:
    """Whether the path exists and must not be replaced by a file: a device, a pipe, /dev/fd/1."""
    return (
        path.exists() and not path.is_dir() and (not path.is_file() or _is_in_dev(path.absolute()))
    )


def _is_in_dev(path: Path) -> bool:
    # /dev/shm is a file system with ordinary files.
    return path.is_relative_to("/dev") and not path.is_relative_to("/dev/shm")


def _get_umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
