"""Evaluate a trained run, or the shipped segmenter: called by `neural evaluate` and Python."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

from neural.core.errors import TaskError
from neural.core.result import Result
from neural.runs.evaluation_file import save_evaluation
from neural.runs.find import DEFAULT_RUNS_DIR, RunName, open_run
from neural.tasks import registry as tasks
from neural.training.trained_run import TrainedRunFolder

SHIPPED = "shipped"
"""In place of a run: the segmenter that comes with the package."""
PAGE_COLUMNS = 110
"""Width, in characters, of the tables on the page of a run."""


def evaluate(
    run: RunName | None = None,
    data: Any = None,
    *,
    runs: str | Path = DEFAULT_RUNS_DIR,
    **options: Any,
) -> Result:
    """Scores of a run on data it was not trained on, beside baselines.

        neural.evaluate("Digits")                       # its own held-out data; prints as a table
        neural.evaluate("Digits", "test.csv").to_dict()
        neural.evaluate("Digits", (X_test, y_test))
        neural.evaluate("shipped", "articles/")         # the segmenter of the package

    `run` is a run, its name or path; the newest run by default. `data` is a file or arrays with
    labels. `options` are those of the run's task, such as `threshold` and `allow_duplicates`.
    TaskError if the task has no such option, or if the data does not fit. The evaluation is saved
    in the run folder, where the page of the run shows it.
    """
    if run == SHIPPED:
        return evaluate_shipped(data, **options)
    if data is not None:
        options["data"] = data
    return evaluate_opened(TrainedRunFolder(open_run(run, runs=runs)), **options)


def evaluate_shipped(data: Any = None, **options: Any) -> Result:
    """Scores of the shipped segmenter on the documents of the file or folder `data`."""
    from neural.tasks.segmentation import evaluation

    if data is None:
        raise TaskError(
            "the shipped segmenter has no documents of its own: name a file or folder of documents "
            "with known segments, `neural evaluate shipped --data FOLDER`"
        )
    if options.pop("allow_duplicates", False):
        raise TaskError("--allow-duplicates does not apply to the shipped segmenter")
    return evaluation.evaluate_shipped(str(data), **options)


def evaluate_opened(opened: TrainedRunFolder, **options: Any) -> Result:
    """As `evaluate`, for a run that is open; `options` may have `data`."""
    evaluation = tasks.get(opened.task_name).evaluate_run(opened, **options)
    with suppress(OSError):  # the folder may be read-only; the evaluation is complete without it
        save_evaluation(opened.path, evaluation.to_dict(), evaluation.to_sections(PAGE_COLUMNS))
    return evaluation
