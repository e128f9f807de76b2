"""The runs that are looked at: each opened once, whoever asks, and each answer made once for all who ask the same."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Any

from neural.tracking.folder import ROWS, STATUS
from neural.tracking.run import Run
from neural.tracking.trouble import RunError
from neural.views.board.listing import Listing

AT_ONCE = 64
"""Runs that are kept open."""
ANSWERS = 16
"""Of one run that are kept, as bytes."""


class NoSuchRun(RunError):
    """Nothing of that name is in the folder."""


class Opened:
    """One run, for everybody. Rows are read by one thread at a time."""

    def __init__(self, path: Path) -> None:
        self.path, self.run, self.lock = path, Run.open(path), Lock()
        self.file = _identity(path / ROWS)
        self._answers: OrderedDict[tuple[Any, ...], bytes] = OrderedDict()
        self._as_of: tuple[int, int] | None = None

    @property
    def stands(self) -> bool:
        """Whether what was opened is still what is there."""
        return _identity(self.path / ROWS) == self.file

    @cached_property
    def aside(self) -> Opened:
        """The same run once more, for what takes its time: nobody who wants a map is to wait for an analysis."""
        return Opened(self.path)

    def as_of(self) -> tuple[int, int]:
        """Changes when rows or the status do. Costs two system calls or so: SQLite looks at its log's index."""
        try:
            status = (self.path / STATUS).stat().st_mtime_ns
        except FileNotFoundError:
            status = 0
        return self.run.changes(), status

    def answer(self, key: tuple[Any, ...], make: Callable[[Run], bytes]) -> bytes:
        """What `make` says, kept until something changes."""
        with self.lock:
            now = self.as_of()
            if now != self._as_of:
                self._answers.clear()
                self._as_of = now
            if key not in self._answers:
                self._answers[key] = make(self.run)
                if len(self._answers) > ANSWERS:
                    self._answers.popitem(last=False)
            return self._answers[key]


class Shelf:
    """Opened runs by their names."""

    def __init__(self, listing: Listing) -> None:
        self.listing = listing
        self._opened: OrderedDict[str, Opened] = OrderedDict()
        self._lock = Lock()

    def __getitem__(self, name: str) -> Opened:
        """The run of that name. NoSuchRun or, where the folder is broken, RunError."""
        with self._lock:
            kept = self._opened.get(name)
            if kept is not None and kept.stands:
                self._opened.move_to_end(name)
                return kept
            self._opened.pop(name, None)   # another one has its name now, or none
            entry = self.listing.find(name)
            if entry is None:
                raise NoSuchRun("there is no such run in this folder")
            if entry.broken:
                raise RunError(entry.broken)
            self._opened[name] = opened = Opened(entry.path)
            if len(self._opened) > AT_ONCE:
                self._opened.popitem(last=False)   # closed when the last who reads it lets go
            return opened


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        about = path.stat()
    except OSError:
        return None
    return about.st_dev, about.st_ino
