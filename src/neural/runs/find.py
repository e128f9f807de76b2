"""Find run folders by name."""

from __future__ import annotations

from pathlib import Path

from neural.runs.errors import RunError
from neural.runs.run import Run

DEFAULT_RUNS_DIR = Path("runs")
"""Where run folders are created unless the user says otherwise."""
MAX_LISTED_RUNS = 5
"""Runs that an error message lists."""


def open_run(path: str | Path) -> Run:
    """Open a run folder for reading; also while it is being written."""
    return Run.open(path)


def find_run(name: str | None, root: Path = DEFAULT_RUNS_DIR) -> Path:
    """Find a run by its path, its folder name or a part of it; without a name, the newest."""
    if name is not None and Path(name).is_dir():
        return Path(name)
    folders = (
        sorted(path for path in root.glob("*") if (path / "status.json").exists())
        if root.is_dir()
        else []
    )
    matches = [path for path in folders if name is None or name in path.name]
    exact_matches = [path for path in matches if path.name == name]
    if exact_matches or (name is None and matches):
        return (exact_matches or matches)[-1]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise RunError(
            f"`{name}` matches several runs: {_format_newest(matches)}; write more of its name"
        )
    # a folder with trials.json is a sweep: many runs over a range of settings
    if name is not None and any(name in path.parent.name for path in root.glob("*/trials.json")):
        raise RunError(
            f"`{name}` is a sweep: name one of its runs by its path, see `neural show {name}`"
        )
    hint = (
        f"; there are {_format_newest(folders)}"
        if folders
        else ": create one with `neural train FILE`, or set --runs"
    )
    raise RunError(f"there is no run{f' `{name}`' if name else ''} in {root}{hint}")


def _format_newest(paths: list[Path]) -> str:
    hidden = len(paths) - MAX_LISTED_RUNS
    names = ", ".join(path.name for path in paths[-MAX_LISTED_RUNS:])
    return names + (f" and {hidden} older" if hidden > 0 else "")
