"""Predict with a trained run: called by `neural predict` and Python."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from neural.runs.find import DEFAULT_RUNS_DIR, RunName, open_run
from neural.runs.run import Run
from neural.tasks import registry as tasks
from neural.tasks.task import Predictions
from neural.training.trained_run import TrainedRunFolder


def describe_input(run: Run) -> str:
    """What the run predicts for, such as "a text file". TaskError if it does not predict."""
    opened = TrainedRunFolder(run)
    return tasks.get(opened.task_name).describe_input(opened)


def predict(
    run: RunName | None, source: Any, *, runs: str | Path = DEFAULT_RUNS_DIR
) -> Predictions:
    """Predictions of a trained run for a file, or for data in memory.

        neural.predict("Digits", "rows.csv")                # prints as a table
        neural.predict("Digits", X).to_records()

    `run` is a run, its name or path; None is the newest run. `source` is the path of a file, the
    bytes of a text, or, for networks on arrays, an array or a DataFrame. TaskError if the data does
    not fit the network.
    """
    predictions = predict_lazily(open_run(run, runs=runs), source)
    return replace(predictions, items=list(predictions.items))


def predict_lazily(run: Run, source: Any) -> Predictions:
    """As `predict`, but each document is predicted when its item is read."""
    opened = TrainedRunFolder(run)
    source = os.fspath(source) if isinstance(source, os.PathLike) else source
    return tasks.get(opened.task_name).predict(opened, source)
