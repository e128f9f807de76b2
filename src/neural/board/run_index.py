"""The runs of a folder, and a summary of each.

A run is the folder of one training. A sweep is a folder with several runs over a grid of settings.
Summaries are read from small JSON files, not from the database of a run: hundreds take
milliseconds. A run name that comes from a request is looked up among the names found here. It is
never made into a path, and links that lead out of the folder are not followed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any

from neural.board.responses import format_error
from neural.core.errors import describe_os_error
from neural.core.registry import UnknownNameError
from neural.runs.errors import RunError
from neural.runs.folder import (
    ROWS_FILE,
    STATUS_FILE,
    find_escaping_link,
    load_status,
    read_json_file,
)
from neural.tasks import registry as tasks
from neural.tasks.task import Task

SWEEP_FILE = "trials.json"
"""A folder with this file is a sweep; its runs are its subfolders."""


@dataclass(frozen=True)
class RunEntry:
    """A folder that is a run or should be one."""

    id: str
    """Name of the folder; "sweep/name" in a sweep."""
    path: Path
    root: Path
    """Links that lead out of this folder are not followed."""
    sweep: str | None = None
    """Name of the sweep that it belongs to."""

    def refuse_links(self) -> None:
        """RunError if the folder is or has a link out of the root folder."""
        if link := find_escaping_link(self.path, self.root):
            raise RunError(f"{link} is a link out of the folder; it is not followed")


class RunIndex:
    """The runs of one folder, or the single run that the folder is."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self._summaries: dict[str, tuple[int, dict[str, Any]]] = {}
        """By run id: modification time of the status file, and the summary read then."""
        self._lock = Lock()

    def list_entries(self) -> list[RunEntry]:
        """All runs, sorted by name; names start with the date."""
        if (self.root / ROWS_FILE).is_file():
            return [RunEntry(_decode_name(self.root.name), self.root, self.root)]
        return list(self._scan_folder(self.root))

    def find(self, name: str) -> RunEntry | None:
        """The run with this id, or None."""
        return next((entry for entry in self.list_entries() if entry.id == name), None)

    def summarize_runs(self) -> list[dict[str, Any]]:
        """One summary per run as JSON data; that of an unreadable run has the error message."""
        entries = self.list_entries()
        with self._lock:
            summaries = [self._summarize(entry) for entry in entries]
            ids = {entry.id for entry in entries}
            self._summaries = {
                run_id: cached for run_id, cached in self._summaries.items() if run_id in ids
            }
        return summaries

    def _scan_folder(self, folder: Path, sweep: str | None = None) -> Iterator[RunEntry]:
        """Entries of the runs in a folder; `sweep` is the name of the folder if it is a sweep."""
        try:
            children = sorted(os.scandir(folder), key=lambda child: child.name)
        except OSError as error:
            if sweep is None:
                raise RunError(f"{folder} cannot be read: {describe_os_error(error)}") from None
            return  # the sweep was removed since its folder was listed
        for child in children:
            # Path.is_dir, unlike DirEntry.is_dir, does not raise for a link to itself
            if child.name.startswith(".") or not (
                child.is_dir(follow_symlinks=False) or Path(child.path).is_dir()
            ):
                continue
            if sweep is not None and not any(
                Path(child.path, file).exists() for file in (STATUS_FILE, ROWS_FILE)
            ):
                continue  # a sweep also has folders with results, which are not runs
            name, path = _decode_name(child.name), Path(child.path)
            # the file of most folders is missing: only those that have it are searched for links
            if (
                sweep is None
                and os.path.isfile(f"{child.path}/{SWEEP_FILE}")  # noqa: PTH113 - a third of the time
                and not find_escaping_link(path, self.root)
            ):
                yield from self._scan_folder(path, name)
            else:
                yield RunEntry(name if sweep is None else f"{sweep}/{name}", path, self.root, sweep)

    def _summarize(self, entry: RunEntry) -> dict[str, Any]:
        """Summary of a run, read again only if its status file changed."""
        try:
            try:
                status_time = os.stat(f"{entry.path}/{STATUS_FILE}").st_mtime_ns  # noqa: PTH116
            except FileNotFoundError:
                status_time = 0
            cached_time, summary = self._summaries.get(entry.id, (-1, {}))
            if cached_time != status_time or not status_time:
                entry.refuse_links()
                summary = _read_summary(entry)
                self._summaries[entry.id] = status_time, summary
            elif summary["state"] == "running":
                # a killed process leaves its status file unchanged; parse_status detects that
                entry.refuse_links()
                status = load_status(entry.path)
                summary = {**summary, "state": status.state}
            return summary
        except Exception as error:  # one damaged folder must not hide the other runs
            return {
                "id": entry.id,
                "name": _decode_name(entry.path.name),
                "kind": "broken",
                "state": "broken",
                "sweep": entry.sweep,
                "message": format_error(error),
            }


def _read_summary(entry: RunEntry) -> dict[str, Any]:
    """Summary of a run from its status and its settings; RunError if they are damaged."""
    if not (entry.path / ROWS_FILE).is_file():
        raise RunError(f"not a run folder: it has no {ROWS_FILE}")
    status, settings = load_status(entry.path), read_json_file(entry.path / "settings.json")
    if not isinstance(settings, dict):
        raise RunError("settings.json is damaged: it is not an object")
    training, task = settings.get("training"), str(settings.get("task", ""))
    best_scores, monitored_metric = status.best, _monitored_metric(task)
    has_best = isinstance(best_scores, dict) and isinstance(
        best_scores.get(monitored_metric), int | float
    )
    return {
        "id": entry.id,
        "name": _decode_name(entry.path.name),
        "kind": "run",
        "sweep": entry.sweep,
        "state": status.state,
        "step": status.step,
        "steps": status.facts.get("steps"),
        "started": status.started,
        "time": status.time,
        "message": status.message,
        "task": task,
        "seed": training.get("seed") if isinstance(training, dict) else None,
        "loss": status.facts.get("loss"),
        "best": {"name": monitored_metric, "score": best_scores[monitored_metric]}
        if has_best
        else None,
    }


def _monitored_metric(task: str) -> str:
    """The metric that selects the best checkpoint of a task."""
    try:
        return tasks.get(task).monitor
    except UnknownNameError:
        return Task.monitor


def _decode_name(name: str) -> str:
    """A folder name as valid text: file systems allow any bytes, which are shown as `\\xff`."""
    return os.fsencode(name).decode("utf-8", errors="backslashreplace")
