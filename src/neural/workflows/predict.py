"""Predict with a trained run: called by `neural predict` and Python."""

from __future__ import annotations

from neural.runs.run import Run
from neural.tasks import registry as tasks
from neural.tasks.task import Predictions
from neural.workflows.trained_run import OpenedRun


def predict(run: Run, source: str | bytes) -> Predictions:
    """Predictions of the run's task for a file, or for the bytes of a text."""
    opened = OpenedRun(run)
    return tasks.get(opened.task_name).predict(opened, source)
