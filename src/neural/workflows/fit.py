"""`neural.fit`: train a network on arrays, frames, files or named data, from Python.

It trains as `neural train` does (train.py) and keeps a run, the folder of one training. A frame is
a pandas or polars DataFrame.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from neural.core.errors import TaskError
from neural.core.experiment import TrainingSettings
from neural.core.experiment_guess import ExperimentGuess
from neural.core.page_section import PageSection
from neural.core.result import Result
from neural.core.settings import flatten_settings, load_settings
from neural.core.table import Column, Table
from neural.optim.catalogue import CATALOGUE
from neural.runs.find import DEFAULT_RUNS_DIR
from neural.runs.run import Run
from neural.tasks.focus.predict import predict_focus
from neural.tasks.focus.task import Focus
from neural.tasks.supervised.predict import PredictedRows, predict_arrays
from neural.tasks.supervised.task import Supervised, SupervisedSettings
from neural.tasks.task import Task
from neural.training.engine import TrainingProgress, TrainingResult
from neural.training.guess_experiment import is_data
from neural.training.load_model import load_best_model
from neural.training.load_task import check_registered_names, load_task
from neural.training.trained_run import TrainedRunFolder
from neural.workflows.evaluate import evaluate_opened
from neural.workflows.load import Blueprint
from neural.workflows.train import (
    OnStep,
    OnWarning,
    PreparedTraining,
    create_sample_evaluator,
    find_typed_path,
    train,
)
from neural.workflows.training_progress import show_fit_progress

if TYPE_CHECKING:
    from torch import nn

EXPERIMENT_SUFFIXES = (".yaml", ".yml")


@dataclass(frozen=True, eq=False, repr=False)
class FitResult(Result):
    """Result of `neural.fit`: the trained model, its run, predictions and scores.

    It can be passed to all functions that take a run, such as `neural.write_report(result)`.
    """

    run: Run
    """The run folder: settings, curves, checkpoints, attention."""
    result: TrainingResult
    """How the training ended, and the scores of the best validation."""
    model: nn.Module
    """The model with its best weights, in evaluation mode."""
    task: Task
    """The task, with its data."""

    @cached_property
    def history(self) -> Any:
        """All metrics by step, as a pandas DataFrame.

        The column `step`, then one column per metric; NaN where a metric was not measured.
        """
        return self.to_dataframe()

    @property
    def tables(self) -> dict[str, Table]:
        """`history`: a row per step, a column per metric."""
        columns = collect_history(self.run)
        rows = list(zip(*columns.values(), strict=True))
        return {"history": Table(tuple(map(Column, columns)), rows)}

    def build_dict(self) -> dict[str, Any]:
        """How the training ended, and the scores of the best validation."""
        result = self.result
        return {
            "run": self.run.name,
            "state": result.state,
            "step": result.step,
            "scores": result.scores,
        }

    def predict(self, X: Any) -> np.ndarray:
        """The predicted class of every example, by name if the labels had names, or the values.

        `X` is an array, a tensor, a list or a frame. A dict has several arrays by name, such as
        `x` and `mask`. TaskError if it does not fit the network; a warning for what it has that the
        training data had not, such as another category.
        """
        return self._predict(X).predicted_labels()

    def predict_proba(self, X: Any) -> np.ndarray:
        """The probability of every class, (examples, classes); columns are in class order.

        One unit with a sigmoid gives two columns, P(no) and P(yes). TaskError if the network
        predicts values.
        """
        return self._predict(X).class_probabilities()

    def evaluate(self, X: Any = None, y: Any = None, **options: Any) -> Result:
        """Scores on `X` and `y` beside baselines, as in `neural.evaluate`.

        Without `X`, on the examples that were held out. TaskError if there are none, or if examples
        of the training are in `X`; `allow_duplicates=True` scores them all the same.
        """
        if X is not None:
            options["data"] = X if y is None else (X, y)
        return evaluate_opened(_FittedRun(self), **options)

    def _predict(self, X: Any) -> PredictedRows:
        if isinstance(self.task, Focus):
            return predict_focus(_FittedRun(self), X)
        if not isinstance(self.task, Supervised):
            raise TaskError(
                f"{self.run.name} is a run of `{self.task.experiment.task}`: use `neural.predict`, "
                "`neural.generate` or `neural.segment`"
            )
        rows = predict_arrays(_FittedRun(self), X, self.model)
        for note in rows.notes:
            warnings.warn(note, stacklevel=3)
        return rows

    def __fspath__(self) -> str:
        """The path of the run folder."""
        return os.fspath(self.run.path)

    def to_sections(self, width: int) -> list[PageSection]:
        """How the training ended, and the scores of the best validation."""
        lines = [f"{self.result.state} after step {self.result.step:,}"]
        lines += [self.result.message] if self.result.message else []
        return [
            PageSection(
                title=self.run.name,
                text="\n".join(lines),
                table_head=("best validation", "") if self.result.scores else (),
                table_rows=list(self.result.scores.items()),
            )
        ]


class _FittedRun(TrainedRunFolder):
    """The run of a result, with the task and the model that are still in memory."""

    def __init__(self, fitted: FitResult) -> None:
        super().__init__(fitted.run)
        self.fitted = fitted

    def load_model(self) -> nn.Module:
        """The model of the result."""
        return self.fitted.model

    def load_task(self) -> Task:
        """The task of the result; its data may be arrays, which no file has."""
        return self.fitted.task


def fit(
    network: Blueprint | str | Path,
    data: Any = None,
    y: Any = None,
    settings: Mapping[str, Any] | None = None,
    *,
    quiet: bool = False,
    runs: str | Path = DEFAULT_RUNS_DIR,
    samples: Mapping[str, Any] | None = None,
    on_step: OnStep | None = None,
    on_warning: OnWarning | None = None,
    **keywords: Any,
) -> FitResult:
    """Train a network on data and keep a run folder.

        result = neural.fit("net.neural", X, y, epochs=20)
        result.predict(X_new), result.evaluate(X_test, y_test), result.history

    `network` is a program's path or text, a checked network (`neural.load`), or an experiment file
    in YAML. It may also be the data alone, such as `neural.fit("novel.txt")`: then task and network
    are guessed, as `neural train novel.txt` does, and a note says the guess.

    `data` is the inputs, with the labels `y`: arrays, tensors, lists, or a DataFrame (then `y` may
    be the name of a column). Labels may be text. Without `y`, `data` is a pair `(X, y)`, four
    arrays `(X, y, X_valid, y_valid)`, a dict of arrays by name, a torch Dataset or DataLoader (read
    once into memory), the path of a file, or the name of a data set.

    Further keywords are keys of an experiment file: those of `training`, such as `steps`, `epochs`,
    `learning_rate`, `batch_size` and `seed`, and `name` or `validation_split`. `settings` has all
    keys, nested as in the file: `{"training": {"steps": 500}}`. `samples` has the keys of
    `neural train --samples`.

    Progress and notes go to standard error, unless `quiet`. `on_step` is called after every step,
    `on_warning` with each note. `runs` is the folder of the run folders. TaskError, a ValueError,
    says what does not fit.
    """
    if settings is None and isinstance(y, Mapping):
        y, settings = None, y  # fit(network, data, settings)
    print_note = _ignore if quiet else _print_note
    if _reads_own_data(network):
        keys = _merge_keywords(settings, keywords, is_training_key=_is_training_key)
        task = _load_file_task(Path(str(network)), data, y, keys, print_note)
    else:
        task = _create_task(network, data, y, _merge_keywords(settings, keywords))
    evaluator = create_sample_evaluator(task, requested=None, saved=samples)
    prepared = PreparedTraining(task, Path(runs), samples=evaluator)
    for note in task.notes:
        print_note(note)
    with nullcontext(_ignore) if quiet else show_fit_progress() as show_step:
        run, result = train(
            prepared,
            on_step=show_step if on_step is None else _call_both(show_step, on_step),
            on_warning=on_warning or print_note,
        )
    assert run is not None, "neural.fit runs in one process"
    # training wrote `run` and closed it
    return FitResult(Run.open(run.path), result, load_best_model(run.path, task), task)


def collect_history(run: Run) -> dict[str, list[Any]]:
    """All scalars of a run as columns of equal length: `step`, then one per name."""
    rows = run.scalar_rows()
    steps = sorted({step for step, _, _ in rows})
    row_of_step = {step: row for row, step in enumerate(steps)}
    columns: dict[str, list[Any]] = {"step": steps}
    for step, name, value in rows:
        column = columns.setdefault(name, [float("nan")] * len(steps))
        column[row_of_step[step]] = value
    return columns


def _reads_own_data(network: Blueprint | str | Path) -> bool:
    """Whether this is an experiment file, or the data itself, rather than a program."""
    path = _program_path(network)
    if path is None or not str(network).strip():
        return False
    try:
        return path.suffix.lower() in EXPERIMENT_SUFFIXES or is_data(path)
    except OSError:  # a text that is too long for a path
        return False


def _program_path(network: Blueprint | str | Path) -> Path | None:
    """The path of a program, an experiment or data; None for a blueprint or a program's text."""
    # every program has a brace: `network Name { … }`
    is_path = not isinstance(network, Blueprint) and "{" not in str(network)
    return Path(str(network)) if is_path else None


def _load_file_task(
    path: Path, data: Any, y: Any, keys: Mapping[str, Any], print_note: OnWarning
) -> Task:
    """The task of an experiment file, or the one that is guessed for data."""
    keys = dict(keys)
    if is_data(path) and (data is not None or y is not None):
        raise TaskError(
            f"{path} is data, not a network: leave out the other data to have a network guessed, "
            f'or pass the network first, neural.fit("net.neural", "{path}")'
        )
    if y is not None or not (data is None or isinstance(data, str | Path)):
        raise TypeError("an experiment file reads its data itself: pass a path or a name")
    if data is not None:
        keys["data"] = str(find_typed_path(str(data), path.parent) or data)
    values = flatten_settings(keys)  # {"training.steps": 500}
    overrides = [f"{key}={json.dumps(value)}" for key, value in values.items()]

    def on_guess(guess: ExperimentGuess) -> None:
        lines = "".join(f"\n  {line}" for line in guess.to_yaml().splitlines())
        print_note(f"{path}: {'; '.join(guess.reasons)}; the same as this experiment:{lines}")

    return load_task(path, overrides, on_guess=on_guess)


def _create_task(
    network: Blueprint | str | Path, data: Any, y: Any, keys: Mapping[str, Any]
) -> Task:
    """The task of a program with arrays or other data."""
    path = _program_path(network)
    keys, folder = dict(keys), Path() if path is None else path.parent
    if y is not None:
        if isinstance(data, str | Path):
            raise TaskError(f"`y` is given, but the data is the name {str(data)!r}; leave `y` out")
        if data is None:
            raise TaskError("`y` is given without `X`: pass both, `neural.fit(network, X, y)`")
        data = (data, y)
    if isinstance(data, str | Path):
        keys["data"], data = str(find_typed_path(str(data), folder) or data), None
    defaults = {"task": "supervised", "network": str(network) if path is None else path.name}
    if isinstance(network, Blueprint):
        defaults |= {"network": network.source.text, "network_name": network.name}
    experiment = load_settings(SupervisedSettings, {**defaults, **keys}, "settings")
    task = Supervised(experiment, folder, CATALOGUE, data=data)
    check_registered_names(task)
    return task


def _is_supervised_training_key(key: str) -> bool:
    return key not in SupervisedSettings.model_fields


def _is_training_key(key: str) -> bool:
    return key in TrainingSettings.model_fields


def _merge_keywords(
    settings: Mapping[str, Any] | None,
    keywords: Mapping[str, Any],
    *,
    is_training_key: Callable[[str], bool] = _is_supervised_training_key,
) -> dict[str, Any]:
    """Settings with the keywords of `fit`: keys of `training`, or of the experiment itself."""
    merged = dict(settings or {})
    for key, value in keywords.items():
        if is_training_key(key):
            merged["training"] = {**merged.get("training", {}), key: value}
        else:
            merged[key] = value
    return merged


def _call_both(first: OnStep, second: OnStep) -> OnStep:
    def call(progress: TrainingProgress) -> None:
        first(progress)
        second(progress)

    return call


def _ignore(*args: object) -> None:
    pass


def _print_note(text: str) -> None:
    print(f"note: {text}", file=sys.stderr)
