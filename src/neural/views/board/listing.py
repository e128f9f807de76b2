"""Which runs there are in a folder, read from their small files alone: hundreds of them in a blink.

What comes from outside as the name of a run is looked up among those that were found here. It is never made into a
path, and what leaves the folder by way of a link is not opened.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any

from neural.core.registry import UnknownName
from neural.tasks import registry as tasks
from neural.tasks.task import Task
from neural.tracking.folder import ROWS, STATUS, json_of, leaving, status_of
from neural.tracking.status import read_status
from neural.tracking.trouble import RunError
from neural.views.board.answers import in_a_line

TABLE = "trials.json"
"""What makes a folder that of a sweep: its runs are one level below."""


@dataclass(frozen=True)
class Entry:
    """A folder that is a run, or ought to be one."""

    id: str
    """Its name; below a sweep, the sweep's name before it."""
    path: Path
    sweep: str | None = None
    broken: str = ""
    """Why it is not opened."""


class Listing:
    """The runs of one folder, or the one run that the folder is."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self._known: dict[str, tuple[int, dict[str, Any]]] = {}
        """What was read of a run, and when its status was written then."""
        self._lock = Lock()

    def entries(self) -> list[Entry]:
        """By name, which begins with the date."""
        if (self.root / ROWS).is_file():
            return [self._entry(self.root, _readable(self.root.name))]
        return list(self._below(self.root))

    def find(self, name: str) -> Entry | None:
        """The run that goes by that name, if there is one."""
        return next((one for one in self.entries() if one.id == name), None)

    def briefs(self) -> list[dict[str, Any]]:
        """Every run in a line; one that cannot be read says why."""
        entries = self.entries()
        with self._lock:
            found = [self._brief(one) for one in entries]
            there = {one.id for one in entries}
            self._known = {name: kept for name, kept in self._known.items() if name in there}
        return found

    def _below(self, folder: Path, sweep: str | None = None) -> Iterator[Entry]:
        try:
            inside = sorted(os.scandir(folder), key=lambda one: one.name)
        except OSError as error:
            if sweep is None:
                raise RunError(f"{folder} cannot be read: {(error.strerror or str(error)).lower()}") from None
            return   # it was removed meanwhile
        for one in inside:
            if one.name.startswith(".") or not Path(one.path).is_dir():   # also where a link leads to itself
                continue
            if sweep is not None and not any(Path(one.path, file).exists() for file in (STATUS, ROWS)):
                continue   # what a study or a comparison wrote about its runs
            name = _readable(one.name)
            entry = self._entry(Path(one.path), name if sweep is None else f"{sweep}/{name}", sweep)
            if sweep is None and not entry.broken and (entry.path / TABLE).is_file():
                yield from self._below(entry.path, name)
            else:
                yield entry

    def _entry(self, path: Path, name: str, sweep: str | None = None) -> Entry:
        leaves = leaving(path, self.root)
        return Entry(name, path, sweep, f"{leaves} is a link out of the folder; it is not followed" if leaves else "")

    def _brief(self, entry: Entry) -> dict[str, Any]:
        try:
            if entry.broken:
                raise RunError(entry.broken)
            written = (entry.path / STATUS).stat().st_mtime_ns if (entry.path / STATUS).exists() else 0
            when, known = self._known.get(entry.id, (-1, {}))
            if when != written or not written:
                known = _read(entry)
                self._known[entry.id] = written, known
            elif known["state"] == "running":   # its process may have gone without a word
                known = {**known, "state": read_status((entry.path / STATUS).read_text(encoding="utf-8")).state}
            return known
        except Exception as wrong:   # anything may be in a folder, and the others are to be seen
            return {"id": entry.id, "name": _readable(entry.path.name), "kind": "broken", "state": "broken",
                    "sweep": entry.sweep, "message": in_a_line(wrong)}  # fmt: skip


def _read(entry: Entry) -> dict[str, Any]:
    if not (entry.path / ROWS).is_file():
        raise RunError(f"it is not a run folder: it has no {ROWS}")
    status, settings = status_of(entry.path), json_of(entry.path / "settings.json")
    if not isinstance(settings, dict):
        raise RunError("settings.json is damaged: it is not a table")
    training, task, scores = settings.get("training"), str(settings.get("task", "")), status.best
    name = _watched(task)
    known = isinstance(scores, dict) and isinstance(scores.get(name), int | float)
    return {
        "id": entry.id, "name": _readable(entry.path.name), "kind": "run", "sweep": entry.sweep, "state": status.state,
        "step": status.step, "steps": status.facts.get("steps"), "started": status.started, "time": status.time,
        "message": status.message, "task": task, "seed": training.get("seed") if isinstance(training, dict) else None,
        "loss": status.facts.get("loss"), "best": {"name": name, "score": scores[name]} if known else None,
    }  # fmt: skip


def _watched(task: str) -> str:
    """The score that decides."""
    try:
        return tasks.get(task).watched
    except UnknownName:
        return Task.watched


def _readable(name: str) -> str:
    """A folder's name may be any bytes."""
    return os.fsencode(name).decode("utf-8", errors="replace")
