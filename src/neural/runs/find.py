"""Find run folders by name.

A name is a path, a folder name, or a part of it in any case. Folder names begin with the time of
creation, `2026-11-16_01-38-55_Digits`, so in sorted order the last one is the newest; of runs with
the same name after the time, the newest is meant. A sweep is a folder of many runs, over a range of
settings.
"""

from __future__ import annotations

import os
import re
import unicodedata
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

from neural.core.names import suggest_name
from neural.runs.errors import RunError, RunWarning, SeveralRunsError
from neural.runs.run import Run

DEFAULT_RUNS_DIR = Path("runs")
"""Where run folders are created unless the user says otherwise."""
MAX_LISTED_RUNS = 5
"""Runs that an error message lists."""
RUN_MARKER, SWEEP_MARKER = "status.json", "trials.json"
"""Files that only a run folder, or only a sweep folder, has."""

_TIME = re.compile(r"^\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d_")

RunName = str | os.PathLike[str]
"""A part of the name of a run, or its path; a `Run` and the result of `neural.fit` are paths."""
Choose = Callable[[str, Sequence[Path]], Path | None]
"""Asks the user which of several folders a name means; None if nobody can be asked."""


def to_run_names(run: RunName | Sequence[RunName] | None) -> list[str]:
    """Names or paths of one run or of several, as `find_run` takes them."""
    if run is None:
        return []
    if isinstance(run, str | os.PathLike):
        return [os.fspath(run)]
    return [os.fspath(each) for each in run]


def open_run(run: RunName | None = None, *, runs: str | Path = DEFAULT_RUNS_DIR) -> Run:
    """Open a run for reading; also while it is being written.

        run = neural.open_run("Digits")  # a part of its name, in any case, is enough
        steps, losses = run.scalars("train/loss")

    `run` is the name of a run in the folder `runs`, or the path of its folder; without it, the
    newest run is opened. A run that is open already, or the result of `neural.fit`, is accepted
    too. RunError if there is no such run.
    """
    if isinstance(run, Run):
        return run
    if run is not None and (not isinstance(run, str) or "/" in run or os.sep in run):
        return Run.open(Path(run))
    return Run.open(find_run(run, Path(runs)))


def find_run(
    name: str | None,
    root: Path = DEFAULT_RUNS_DIR,
    *,
    choose: Choose | None = None,
    is_changed: bool = False,
) -> Path:
    """Find a run by its path or by (a part of) its folder name; without a name, the newest.

    Of several matches that differ only in their date, it is the newest, with a RunWarning; not if
    the run `is_changed` by the caller. Of other matches `choose` selects one; without it they are a
    RunError that lists them.
    """
    return find_folder(name, root, (RUN_MARKER,), "run", choose, is_changed=is_changed)


def find_run_target(
    target: str, root: Path = DEFAULT_RUNS_DIR, *, is_run: bool = False
) -> Path | None:
    """The folder of a run if a target of `neural watch` is one; None for other models.

    SeveralRunsError if the target matches several runs; RunError if it must be a run (`is_run`), and
    is a name that no run has.
    """
    path = Path(target)
    if (path / RUN_MARKER).exists():
        return path
    if path.exists() or ":" in target or path.suffix:
        return None
    try:
        return find_run(target, root)
    except SeveralRunsError:
        raise
    except RunError:
        if is_run:
            raise
        return None


def find_folder(
    name: str | None,
    root: Path,
    markers: Sequence[str],
    noun: str,
    choose: Choose | None = None,
    *,
    is_changed: bool = False,
) -> Path:
    """Find a folder in `root` that has a file of `markers`, as `find_run`.

    `noun` is its kind in messages.
    """
    if name is not None and any((Path(name) / marker).exists() for marker in markers):
        return Path(name)
    folders = _list_folders(root, markers)
    if name is None and folders:
        return folders[-1]
    matches = [] if name is None else match_folders(name, folders)
    if len(matches) == 1:
        return matches[0]
    if name is not None and matches:
        if not is_changed and len({_get_name_after_time(folder) for folder in matches}) == 1:
            warnings.warn(
                f"`{name}` matches {len(matches)} {noun}s that differ only in their date; this is "
                f"the newest: {matches[-1].name}",
                RunWarning,
                stacklevel=3,
            )
            return matches[-1]
        chosen = choose(name, matches) if choose is not None else None
        if chosen is not None:
            return chosen
        names = _format_newest(matches)
        raise SeveralRunsError(f"`{name}` matches several {noun}s: {names}; write more of its name")
    if name is not None and Path(name).is_dir():
        return Path(name)  # opening it reports what is wrong with it
    sweeps = [] if SWEEP_MARKER in markers else _list_folders(root, (SWEEP_MARKER,))
    if name is not None and match_folders(name, sweeps):
        raise RunError(
            f"`{name}` is a sweep: name one of its runs by its path, see `neural show {name}`"
        )
    suggestion = None
    if name is not None:
        typed_names = [_get_name_after_time(folder) for folder in folders]
        suggestion = suggest_name(name, typed_names)
    hint = f"; {suggestion or f'there are {_format_newest(folders)}'}" if folders else ""
    if not folders and RUN_MARKER in markers:
        hint = ": create one with `neural train FILE`, or set --runs"
    raise RunError(f"there is no {noun}{f' `{name}`' if name else ''} in {root}{hint}")


def match_folders(name: str, folders: Sequence[Path]) -> list[Path]:
    """The folders that a name means, in the given order.

    An equal folder name wins; then one that is equal in another case; then one whose name is equal
    after the time, so that `novel` is not `novel-large`; then all that contain the name.
    """
    typed = _fold_name(name)
    # two runs of the same second are called `…_novel` and `…_novel-2`
    after_time = re.compile(rf"(?:[\d-]+_)*{re.escape(typed)}(?:-\d+)?")
    conditions: tuple[Callable[[str], object], ...] = (
        lambda folder_name: folder_name == name,
        lambda folder_name: _fold_name(folder_name) == typed,
        lambda folder_name: after_time.fullmatch(_fold_name(folder_name)),
        lambda folder_name: typed in _fold_name(folder_name),
    )
    for condition in conditions:
        if matches := [folder for folder in folders if condition(folder.name)]:
            return matches
    return []


def _get_name_after_time(folder: Path) -> str:
    return _TIME.sub("", folder.name)


def _fold_name(name: str) -> str:
    """The name without case; macOS may list `ö` as `o` and a combining mark."""
    return unicodedata.normalize("NFC", name).casefold()


def _list_folders(root: Path, markers: Sequence[str]) -> list[Path]:
    """Folders with a file of `markers`, newest last; those that begin with a dot are unfinished."""
    if not root.is_dir():
        return []
    return sorted(
        path for path in root.glob("[!.]*") if any((path / marker).exists() for marker in markers)
    )


def _format_newest(paths: Sequence[Path]) -> str:
    hidden = len(paths) - MAX_LISTED_RUNS
    names = ", ".join(path.name for path in paths[-MAX_LISTED_RUNS:])
    return names + (f" and {hidden} older" if hidden > 0 else "")
