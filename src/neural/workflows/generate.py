"""Generate text with a trained run: called by `neural generate`, the board and Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from neural.runs.run import Run
from neural.tasks import registry as tasks
from neural.workflows.trained_run import OpenedRun


def load_generator(run: str | Path | Run) -> Any:
    """The text generator of a run with its best weights, as its task offers it."""
    opened = OpenedRun(run if isinstance(run, Run) else Run.open(run))
    return tasks.get(opened.task_name).load_generator(opened)
