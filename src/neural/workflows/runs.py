"""List the runs of a folder and their progress: called by `neural runs` and Python.

A run is the folder of one training; a sweep is a folder of runs, its trials, and their results.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

from neural.analysis.run_summary import list_runs, summarize_run
from neural.core.errors import TaskError, describe_os_error
from neural.core.html_document import render_paragraph, render_table
from neural.core.text_table import format_number, format_table
from neural.runs.errors import RunError
from neural.runs.find import DEFAULT_RUNS_DIR
from neural.runs.run import Run
from neural.workflows.sweep import TRIALS_FILE, open_sweep

TABLE_HEAD = ("run", "state", "step", "best")


class RunTable(list[dict[str, Any]]):
    """The runs and sweeps of a folder, newest last: a dict each, as in `neural runs --json`."""

    def __init__(self, summaries: list[dict[str, Any]], folder: Path) -> None:
        super().__init__(summaries)
        self.folder = folder

    def to_dataframe(self) -> Any:
        """A pandas DataFrame with one row per run; the best validation is in columns of its own."""
        if find_spec("pandas") is None:
            raise TaskError("to_dataframe needs pandas: pip install pandas")
        import pandas  # optional, and slow to import

        rows = []
        for summary in self:
            best = summary.get("best") or {}
            row = {key: value for key, value in summary.items() if key != "best"}
            rows.append({**row, "best_step": best.get("step"), **best.get("scores", {})})
        return pandas.DataFrame(rows)

    def table_rows(self) -> list[tuple[str, str, str, str]]:
        """Name, state, step and best score of every run, as text."""
        return [_format_row(summary) for summary in self]

    def __repr__(self) -> str:
        if not self:
            return f"no runs in {self.folder}"
        return format_table([TABLE_HEAD, *self.table_rows()], (2,), indent="")

    def _repr_html_(self) -> str:
        if not self:
            return render_paragraph(repr(self))
        return render_table(TABLE_HEAD, self.table_rows())


def _format_row(summary: dict[str, Any]) -> tuple[str, str, str, str]:
    if summary["kind"] == "broken":
        return summary["name"], "broken", "", summary["message"]
    if summary["kind"] == "sweep":
        trials = f"{summary['finished']}/{summary['trials']} trials"
        return summary["name"], summary["state"], trials, ""
    best = summary["best"]
    score = f"{best['name'].removeprefix('valid/')} {format_number(best['score'])}" if best else "–"
    steps = f"{summary['step']:,}" + (f"/{summary['steps']:,}" if summary["steps"] else "")
    return summary["name"], summary["state"], steps, score


def runs(folder: str | Path = DEFAULT_RUNS_DIR) -> RunTable:
    """All runs and sweeps of a folder, newest last.

        neural.runs()                                  # prints as a table
        [run["name"] for run in neural.runs() if run["state"] == "failed"]
        neural.runs().to_dataframe()                   # with pandas

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
        return RunTable([summarize_folder(path) for path in list_runs(folder)], folder)
    except OSError as error:
        raise RunError(f"{folder} cannot be read: {describe_os_error(error)}") from None


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
