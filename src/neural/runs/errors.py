"""Errors of run folders: what failed, why, and what to do."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from neural.core.errors import NeuralError

DISK_FULL = (
    "the disk is full; free some space and try again; a training resumes from its last checkpoint"
)
NOT_WRITABLE = "no permission to write there; choose another folder"
STORE_DAMAGED = "rows.sqlite is damaged; the checkpoints beside it need not be"
ERRNO_REASONS = {
    errno.ENOSPC: DISK_FULL,
    errno.EDQUOT: DISK_FULL,
    errno.EROFS: NOT_WRITABLE,
    errno.EACCES: NOT_WRITABLE,
    errno.EPERM: NOT_WRITABLE,
    errno.EIO: "the disk reports an error; what was saved before is kept",
    errno.ENOTDIR: "a component of that path is a file, not a folder",
    errno.EEXIST: "there is a file of that name",
}
"""Messages for OSError.errno."""
SQLITE_REASONS = {
    sqlite3.SQLITE_FULL: DISK_FULL,
    sqlite3.SQLITE_READONLY: NOT_WRITABLE,
    sqlite3.SQLITE_IOERR: ERRNO_REASONS[errno.EIO],
    sqlite3.SQLITE_IOERR_SHMSIZE: (
        "there is no space left, or the disk reports an error; what was saved before is kept"
    ),
    sqlite3.SQLITE_CANTOPEN: (
        "rows.sqlite cannot be opened: no permission to write there, no space left, or a path of "
        "more than 500 bytes"
    ),
    sqlite3.SQLITE_CORRUPT: STORE_DAMAGED,
    sqlite3.SQLITE_NOTADB: STORE_DAMAGED,
    sqlite3.SQLITE_ERROR: STORE_DAMAGED,  # a missing table
    sqlite3.SQLITE_BUSY: "another process has locked rows.sqlite; try again when it is done",
}
"""Messages for SQLite result codes, extended or primary."""


class RunError(NeuralError):
    """A run folder cannot be written or read; the message says why and what to do."""


class SeveralRunsError(RunError):
    """A name matches several runs; the message lists them."""


class RunWarning(UserWarning):
    """An entry of a run folder cannot be used, but the rest can; or a name matches several runs."""


@contextmanager
def translate_errors(action: str) -> Iterator[None]:
    """Turn OSError and sqlite3 errors inside the block into `RunError("{action}: {reason}")`."""
    try:
        yield
    except OSError as error:
        reason = ERRNO_REASONS.get(error.errno or 0, error.strerror or str(error))
        raise RunError(f"{action}: {reason}") from error
    except sqlite3.DatabaseError as error:
        code = getattr(error, "sqlite_errorcode", None)
        if code is None and "decode" in str(error):  # from Python: a TEXT value that is not UTF-8
            code = sqlite3.SQLITE_CORRUPT
        if code is None:  # wrong use of the sqlite3 module: a bug here, not a damaged file
            raise
        # extended result codes keep the primary code in the low byte
        reason = SQLITE_REASONS.get(code) or SQLITE_REASONS.get(code & 0xFF, str(error))
        raise RunError(f"{action}: {reason}") from error


@contextmanager
def advise_on_full_disk(advice: str) -> Iterator[None]:
    """Let the RunError of a full disk have this advice; the usual one is to resume a training."""
    try:
        yield
    except RunError as error:
        if DISK_FULL not in str(error):
            raise
        message = str(error).replace(DISK_FULL, f"the disk is full; {advice}")
        raise RunError(message) from error
