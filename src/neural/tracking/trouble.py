"""What can go wrong with a run folder, in words: what was being done, why it failed, what to do."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

FULL = "the disk is full; free some space and go on from the last checkpoint, which is kept"
CLOSED = "no right to write there; choose another folder"
DAMAGED = "rows.sqlite is damaged; the checkpoints beside it need not be"
REASONS = {
    errno.ENOSPC: FULL, errno.EDQUOT: FULL, errno.EROFS: CLOSED, errno.EACCES: CLOSED, errno.EPERM: CLOSED,
    errno.EIO: "the disk reports an error; what was saved before is kept",
    errno.ENOTDIR: "a part of that path is a file, not a folder", errno.EEXIST: "there is a file of that name",
}  # fmt: skip
ROWS_REASONS = {
    sqlite3.SQLITE_FULL: FULL,
    sqlite3.SQLITE_READONLY: CLOSED,
    sqlite3.SQLITE_IOERR: REASONS[errno.EIO],
    sqlite3.SQLITE_IOERR_SHMSIZE: "there is no space left, or the disk reports an error; what was saved before is kept",
    sqlite3.SQLITE_CANTOPEN: "its rows cannot be opened: there is no right to write there, or no space left",
    sqlite3.SQLITE_CORRUPT: DAMAGED,
    sqlite3.SQLITE_NOTADB: DAMAGED,
    sqlite3.SQLITE_ERROR: DAMAGED,   # it has not the tables that it should have
    sqlite3.SQLITE_BUSY: "another process holds its rows; try again when that is done",
}


class RunError(Exception):
    """A run folder cannot be written or read as asked; the message says why and what to do."""


class RunWarning(UserWarning):
    """One entry of a run folder cannot be used; the rest of the run can."""


@contextmanager
def in_words(doing: str) -> Iterator[None]:
    """Turn what the disk and SQLite say inside the block into a RunError that begins with `doing`."""
    try:
        yield
    except OSError as error:
        reason = REASONS.get(error.errno or 0, error.strerror or str(error))
        raise RunError(f"{doing}: {reason}") from error
    except sqlite3.DatabaseError as error:
        code = getattr(error, "sqlite_errorcode", None)
        if code is None and "decode" in str(error):   # Python's own: a text that is none
            code = sqlite3.SQLITE_CORRUPT
        if code is None:   # not the file's fault but ours
            raise
        reason = ROWS_REASONS.get(code) or ROWS_REASONS.get(code & 0xFF, str(error))   # the low byte is the kind
        raise RunError(f"{doing}: {reason}") from error
