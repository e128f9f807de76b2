"""List the runs of a folder and their progress: called by `neural runs` and Python.

A run is the folder of one training; a sweep is a folder of runs, its trials, and their results.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from neural.core.errors import TaskError, describe_os_error
from neural.core.escape import shorten
from neural.core.files import write_atomically
from neural.core.page_section import PageSection
from neural.core.result import Result
from neural.core.table import Table, format_age, format_number
from neural.data.downloads import cache_folder
from neural.findings.run_summary import find_run_folders, summarize_run
from neural.runs.errors import RunError
from neural.runs.find import DEFAULT_RUNS_DIR, RUN_MARKER
from neural.runs.folder import ROWS_FILE
from neural.runs.run import Run
from neural.workflows.sweep import TRIALS_FILE, open_sweep

MAX_NAME_WIDTH = 40
"""Characters of a name in the table."""
ENDED_STATES = ("finished", "stopped", "failed")
"""States that only another training changes; whether a running one is lost depends on processes."""
MIN_INDEXED_RUNS = 100
"""Folders with fewer runs are read each time."""


class RunTable(Result, list[dict[str, Any]]):
    """The runs and sweeps of a folder, newest last: a dict each, as in `neural runs --json`."""

    def __init__(self, summaries: list[dict[str, Any]], folder: Path, older_count: int = 0) -> None:
        """`older_count` runs of the folder are not in the list."""
        super().__init__(summaries)
        self.folder, self.older_count = folder, older_count

    def build_dict(self) -> dict[str, Any]:
        """Folder and summaries."""
        return {"folder": self.folder, "runs": list(self), "older": self.older_count}

    @property
    def tables(self) -> dict[str, Table]:
        """`runs`: a row per run; the best validation is in columns of its own."""
        records = []
        for summary in self:
            best = summary.get("best") or {}
            record = {key: value for key, value in summary.items() if key != "best"}
            records.append({**record, "best_step": best.get("step"), **best.get("scores", {})})
        return {"runs": Table.from_records(records)}

    def to_sections(self, width: int) -> list[PageSection]:
        """A line per run or sweep, then the messages of broken folders."""
        if not self:
            return [PageSection(title=f"no runs in {self.folder}")]
        lines = [
            f"{summary['name']} is broken: {summary['message']}"
            for summary in self
            if summary["kind"] == "broken"
        ]
        if self.older_count:
            lines.append(f"… and {self.older_count:,} older: `neural runs --all`")
        rows = [(shorten(summary["name"], MAX_NAME_WIDTH), *_describe(summary)) for summary in self]
        head = ("run", "state", "step", "best", "age")
        table = PageSection(title="", table_head=head, table_rows=rows)
        return [table, PageSection(title="", text="\n".join(lines))] if lines else [table]


def _describe(summary: dict[str, Any]) -> tuple[str, str, str, str]:
    """State, progress, best score and age of a run or sweep, as text."""
    if summary["kind"] == "broken":
        return "broken", "", "", ""
    if summary["kind"] == "sweep":
        progress = f"{summary['finished']}/{summary['trials']} trials"
        return summary["state"], progress, "", format_age(summary["time"])
    best = summary["best"]
    score = f"{best['name'].removeprefix('valid/')} {format_number(best['score'])}" if best else "–"
    steps = f"{summary['step']:,}" + (f"/{summary['steps']:,}" if summary["steps"] else "")
    return summary["state"], steps, score, format_age(summary["time"] or summary["started"])


def list_runs(folder: str | Path = DEFAULT_RUNS_DIR, *, newest: int | None = None) -> RunTable:
    """All runs and sweeps of a folder, newest last; with `newest`, only so many.

        neural.list_runs()                                  # prints as a table
        [run["name"] for run in neural.list_runs() if run["state"] == "failed"]
        neural.list_runs().to_dataframe()                   # with pandas

    Each is a dict with name, path, kind (run, sweep or broken), state, step and best validation.
    RunError if the folder cannot be read; the default folder may be missing.
    """
    folder = Path(folder)
    # the default folder may not exist yet: then there are no runs
    if not folder.is_dir():
        if folder == DEFAULT_RUNS_DIR:
            return RunTable([], folder)
        raise RunError(f"there is no folder {folder}")
    try:
        paths = find_run_folders(folder)
        first = 0 if newest is None else max(0, len(paths) - newest)
        return RunTable(_summarize_folders(folder, paths, first), folder, first)
    except OSError as error:
        raise RunError(f"{folder} cannot be read: {describe_os_error(error)}") from None


def _summarize_folders(folder: Path, paths: Sequence[Path], first: int) -> list[dict[str, Any]]:
    """Summaries of the runs from `first` on. Of many, those of ended runs are kept in the cache.

    To open a run takes 10 ms, to see that none of its files has changed .1 ms.
    """
    older, paths = paths[:first], paths[first:]
    if len(paths) < MIN_INDEXED_RUNS:
        return [summarize_folder(path) for path in paths]
    key = hashlib.sha256(os.fsencode(folder.resolve())).hexdigest()
    try:
        index_path = cache_folder() / "runs" / f"{key}.json"
    except TaskError:  # a user without a home folder
        return [summarize_folder(path) for path in paths]
    try:
        known = json.loads(index_path.read_bytes())
    except (OSError, ValueError):
        known = {}
    names = [_encode_name(path) for path in older]
    index: dict[str, Any] = {name: known[name] for name in names if name in known}
    summaries = []
    for path in paths:
        files = _stat_files(path)
        name = _encode_name(path)
        entry = known.get(name)
        if entry is not None and entry["files"] == files:
            summary = {**entry["summary"], "path": str(path.absolute())}
        else:
            summary = summarize_folder(path)
        if summary["kind"] == "run" and summary["state"] in ENDED_STATES:
            index[name] = {"files": files, "summary": summary}
        summaries.append(summary)
    if index != known:
        with suppress(OSError):  # it only saves time
            index_path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(index_path, json.dumps(index), durable=False)
    return summaries


def _encode_name(path: Path) -> str:
    """Key of a run in the index: a name need not be valid Unicode."""
    return os.fsencode(path.name).hex()


def _stat_files(path: Path) -> list[list[int]]:
    """Size and times of change of the files that a summary is read from."""
    stats = []
    for name in (RUN_MARKER, ROWS_FILE, f"{ROWS_FILE}-wal", "settings.json"):
        try:
            stat = os.stat(f"{path}/{name}")  # noqa: PTH116 - a third of the time of Path.stat
        except OSError:
            stats.append([])
        else:
            # a reader of SQLite leaves an empty log
            is_empty = not stat.st_size
            stats.append([] if is_empty else [stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns])
    return stats


def summarize_folder(path: Path) -> dict[str, Any]:
    """Summary of a run or sweep; an unreadable folder has the kind "broken"."""
    try:
        if (path / TRIALS_FILE).exists():
            return {
                "name": path.name,
                "path": str(path.absolute()),
                "kind": "sweep",
                **open_sweep(path).count_states(),
            }
        with Run.open(path) as run:
            return {**summarize_run(run), "kind": "run"}
    except Exception as error:  # a folder can contain anything; the others are still listed
        return {
            "name": path.name,
            "path": str(path.absolute()),
            "kind": "broken",
            "state": "broken",
            "message": str(error),
        }
