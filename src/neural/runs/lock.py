"""Lock of a run folder: one process at a time writes it."""

from __future__ import annotations

import os
from pathlib import Path

from neural.core.platform_support import lock_file
from neural.runs.errors import RunError, translate_errors
from neural.runs.status import RunStatus


class RunLock:
    """Exclusive lock on a file; the system releases it when the process dies."""

    _held_here: set[tuple[int, int]] = set()
    """(device, inode) of the files that this process has locked. Needed on POSIX, where a process
    can lock a file twice, and where closing any handle of the file releases its lock."""

    def __init__(self, path: Path) -> None:
        self._handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        file_stat = os.fstat(self._handle)
        self._file_id = (file_stat.st_dev, file_stat.st_ino)
        try:
            lock_file(self._handle)
        except BaseException:
            os.close(self._handle)
            raise
        RunLock._held_here.add(self._file_id)

    @classmethod
    def acquire(cls, path: Path, status: RunStatus) -> RunLock:
        """Lock the file `path`; RunError if it is locked already.

        The error names the process that writes the run, from the run's `status`.
        """
        with translate_errors(f"{path.parent} cannot be written"):
            is_ours = path.exists() and (path.stat().st_dev, path.stat().st_ino) in cls._held_here
            try:
                if not is_ours:
                    return cls(path)
            except (BlockingIOError, PermissionError):
                if not os.access(path, os.W_OK):
                    raise
        owner = "this process" if is_ours else f"process {status.pid} on {status.host}"
        raise RunError(
            f"{path.parent} is being written by {owner}; wait until it ends, or stop it first"
        )

    def release(self) -> None:
        """Release the lock. Does nothing if it was released before."""
        if self._file_id in RunLock._held_here:
            RunLock._held_here.remove(self._file_id)
            os.close(self._handle)
