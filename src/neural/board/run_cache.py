"""Open runs of the board (the local web page), shared by all requests, with cached responses.

A run is the folder of one training; its rows (logged values by step) are in an SQLite database.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Any

from neural.board.run_index import RunIndex
from neural.runs.errors import RunError
from neural.runs.folder import ROWS_FILE, STATUS_FILE
from neural.runs.importance_file import IMPORTANCE_FILE
from neural.runs.run import Run

MAX_OPEN_RUNS = 32
"""Of more runs, the least recently used ones are dropped."""
MAX_CACHED_RESPONSES = 16
"""Encoded responses of one run; the oldest are dropped."""


class RunNotFoundError(RunError):
    """The folder has no run of that name."""


class OpenRun:
    """A run that all requests share. `lock` allows one reading thread at a time."""

    def __init__(self, path: Path) -> None:
        self.path, self.run, self.lock = path, Run.open(path), Lock()
        # a folder may be deleted and another run created under the same path
        self.file_identity = _file_identity(path / ROWS_FILE)
        self._responses: OrderedDict[tuple[Any, ...], bytes] = OrderedDict()
        self._version: tuple[int, ...] | None = None
        """`read_version` at the time of the cached responses."""

    @property
    def is_current(self) -> bool:
        """Whether the path still leads to the database that was opened."""
        return _file_identity(self.path / ROWS_FILE) == self.file_identity

    @cached_property
    def analysis_connection(self) -> OpenRun:
        """The same run with its own lock, so that slow analyses do not block other requests."""
        return OpenRun(self.path)

    def read_version(self) -> tuple[int, ...]:
        """Change counters of the rows, the status file and the importance of heads.

        Costs about three system calls: SQLite reads its counter from the index of its write-ahead
        log.
        """
        files = (self.path / STATUS_FILE, self.path / IMPORTANCE_FILE)
        return self.run.change_counter(), *map(_modification_time, files)

    def cached_response(self, key: tuple[Any, ...], encode: Callable[[Run], bytes]) -> bytes:
        """The result of `encode(run)`, cached under `key` until the run changes."""
        with self.lock:
            version = self.read_version()
            if version != self._version:
                self._responses.clear()
                self._version = version
            if key not in self._responses:
                with self.run.snapshot():
                    self._responses[key] = encode(self.run)
                if len(self._responses) > MAX_CACHED_RESPONSES:
                    self._responses.popitem(last=False)
            return self._responses[key]


class RunCache:
    """Open runs by name; the least recently used ones are dropped."""

    def __init__(self, run_index: RunIndex) -> None:
        self.run_index = run_index
        self._open_runs: OrderedDict[str, OpenRun] = OrderedDict()
        self._lock = Lock()

    def __getitem__(self, name: str) -> OpenRun:
        """The run of that name.

        RunNotFoundError where there is none; RunError where its folder is damaged.
        """
        with self._lock:
            cached = self._open_runs.get(name)
            if cached is not None and cached.is_current:
                self._open_runs.move_to_end(name)
                return cached
            self._open_runs.pop(name, None)  # the folder was removed or replaced
            entry = self.run_index.find(name)
            if entry is None:
                raise RunNotFoundError("there is no such run in this folder")
            entry.refuse_links()
            self._open_runs[name] = opened = OpenRun(entry.path)
            if len(self._open_runs) > MAX_OPEN_RUNS:
                # not closed here: another thread may be reading it
                self._open_runs.popitem(last=False)
            return opened


def _modification_time(path: Path) -> int:
    """Time of the last change of a file in nanoseconds; 0 if it does not exist."""
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:
        return 0


def _file_identity(path: Path) -> tuple[int, int] | None:
    """Device and inode of a file; None if it does not exist."""
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_dev, stat.st_ino
