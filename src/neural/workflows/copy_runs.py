"""Copy runs into a folder of runs, and merge folders: `neural runs copy`, `neural runs merge`.

A copy that is there already is replaced by a newer one of the same run, and kept if it is newer
itself. Two copies of one run that were trained separately, or two runs of the same name, are not
mixed: the second is refused, or gets another name.
"""

from __future__ import annotations

import shutil
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, Literal

from neural.core.files import open_atomic
from neural.core.platform_support import STOP_SIGNALS
from neural.runs.copy import Relation, copy_run
from neural.runs.errors import RunError, translate_errors
from neural.runs.find import SWEEP_MARKER
from neural.runs.folder import PRIVATE_FOLDER_MODE, ROWS_FILE

Outcome = Literal["copied", "updated", "unchanged", "kept", "refused"]
"""`kept`: the target has a newer state of the run. `refused`: see the message."""


@dataclass(frozen=True)
class CopiedRun:
    """What happened to one run."""

    source: Path
    target: Path
    outcome: Outcome
    message: str = ""
    """Why it was refused."""

    def to_dict(self) -> dict[str, Any]:
        """As JSON data."""
        return {
            "source": str(self.source),
            "target": str(self.target),
            "outcome": self.outcome,
            "message": self.message,
        }


OnCopied = Callable[[CopiedRun], None]


def copy_runs(
    sources: Sequence[Path],
    target: Path,
    *,
    rename: bool = False,
    on_copied: OnCopied = lambda copied: None,
) -> list[CopiedRun]:
    """Copy runs, sweeps and all runs of other folders into the folder `target`.

    With `rename`, a run whose name is taken by another one gets a number; otherwise it is refused.
    `on_copied` is called after each run. RunError if a source is not a folder.
    """
    results = []
    for source in sources:
        if not source.is_dir():
            raise RunError(f"there is no folder {source}")
        for result in _copy_source(source.absolute(), target.absolute(), rename=rename):
            results.append(result)
            on_copied(result)
    return results


def copy_repeatedly(copy: Callable[[], None], seconds: float) -> None:
    """Call `copy` every so many seconds until a signal to stop; a copy under way is finished."""
    stop = threading.Event()
    previous_handlers = {
        number: signal.signal(number, lambda *_: stop.set()) for number in STOP_SIGNALS
    }
    try:
        while not stop.is_set():
            copy()
            stop.wait(seconds)
    finally:
        for number, handler in previous_handlers.items():
            signal.signal(number, handler)


def _copy_source(source: Path, target: Path, *, rename: bool) -> Iterator[CopiedRun]:
    """Copy a run, a sweep, or all of them in a folder; yields what happened to each run.

    The runs of a sweep stay together in a folder of its name. Its table is copied after them.
    """
    if (source / ROWS_FILE).exists():
        yield _copy_or_refuse(source, target, rename=rename)
        return
    is_sweep = (source / SWEEP_MARKER).exists()
    folder = target / source.name if is_sweep else target
    for path in sorted(source.glob("[!.]*")):
        if (path / ROWS_FILE).exists() or (path / SWEEP_MARKER).exists():
            yield from _copy_source(path, folder, rename=rename)
    if is_sweep:
        try:
            _copy_table(source, folder)
        except RunError as error:
            yield CopiedRun(source, folder, "refused", str(error))


def _copy_table(source: Path, target: Path) -> None:
    """Copy the files of a sweep that are newer than those of the target: its table and logs."""
    with translate_errors(f"{source} cannot be copied to {target}"):
        target.mkdir(parents=True, exist_ok=True)
        if source.stat().st_mode & 0o077 == 0:
            target.chmod(PRIVATE_FOLDER_MODE)  # private sweeps stay private
        for path in sorted(source.glob("[!.]*")):
            copy = target / path.name
            if not path.is_file() or path.is_symlink() or path.name == "lock":
                continue
            if copy.exists() and copy.stat().st_mtime_ns >= path.stat().st_mtime_ns:
                continue
            with path.open("rb") as reader, open_atomic(copy) as writer:
                shutil.copyfileobj(reader, writer)
            shutil.copystat(path, copy)


def _copy_or_refuse(source: Path, folder: Path, *, rename: bool) -> CopiedRun:
    """Copy a run into a folder, under its name or with a number."""
    path = folder / source.name
    try:
        relation = copy_run(source, path)
        numbers = count(2)
        while rename and relation in ("other", "diverged"):
            path = folder / f"{source.name}-{next(numbers)}"
            relation = copy_run(source, path)
    except RunError as error:
        return CopiedRun(source, path, "refused", str(error))
    if relation == "other":
        message = f"{path} is another run of the same name; `--rename` copies this one beside it"
        return CopiedRun(source, path, "refused", message)
    if relation == "diverged":
        message = (
            f"{path} is a copy of the same run that was trained separately: the losses up to the "
            "last common checkpoint differ; `--rename` copies this one beside it"
        )
        return CopiedRun(source, path, "refused", message)
    outcomes: dict[Relation | None, Outcome] = {
        None: "copied",
        "newer": "updated",
        "older": "kept",
        "same": "unchanged",
    }
    return CopiedRun(source, path, outcomes[relation])
