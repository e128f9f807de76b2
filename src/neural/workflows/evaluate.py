"""Evaluate a trained run on held-out data: called by `neural evaluate` and Python."""

from __future__ import annotations

from typing import Any

from neural.runs.run import Run
from neural.tasks import registry as tasks
from neural.tasks.task import Evaluation
from neural.workflows.trained_run import OpenedRun


def evaluate(run: Run, **options: Any) -> Evaluation:
    """Scores of the run; `options` are those of its task, such as `data` and `threshold`."""
    opened = OpenedRun(run)
    return tasks.get(opened.task_name).evaluate_run(opened, **options)
