"""Base class of tasks: batches, loss and metrics; predictions and scores of trained runs.

A task is what a model is trained for, such as `language_model`. An experiment is its settings
(core/experiment.py), and a run the folder of one training.

`batch(17)` returns the same batch whenever it is called: batches depend on the seed and the index
alone. So a resumed run is bit-identical to an uninterrupted one, and a training on several
processes sees the same batches as one on a single process.

`neural predict`, `neural evaluate` and `neural generate` open a run and call the class methods of
its task, so a task of another package works with them unchanged.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

import numpy as np

from neural.core.errors import TaskError
from neural.core.experiment import Experiment
from neural.core.experiment_guess import ExperimentGuess
from neural.core.metadata_fields import MetadataField
from neural.core.page_section import PageSection
from neural.core.result import Result
from neural.core.table import Column, Table
from neural.nn.lazy_torch import torch
from neural.optim.optimizer import Optimizer
from neural.optim.optimizer_factory import create_optimizer

if TYPE_CHECKING:
    from torch import Tensor, nn

    from neural.core.page_section import SectionRun
    from neural.language.catalogue import Catalogue
    from neural.language.network import Network

    Batch = Mapping[str, Tensor]
    """Tensors by name; examples are along the first axis."""
    Scores = dict[str, Any]
    """Metrics by name, and arrays of the values that some metrics average."""


def split_scores(scores: Scores) -> tuple[dict[str, float], dict[str, np.ndarray]]:
    """Split the result of `Task.evaluate` into (numbers, arrays)."""
    arrays = {name: value for name, value in scores.items() if isinstance(value, np.ndarray)}
    return {name: value for name, value in scores.items() if name not in arrays}, arrays


def count_positions(tensors: Iterable[Tensor]) -> int:
    """Number of positions of the largest tensor: rows of a table, tokens of texts, pixels.

    The last axis of floating-point numbers are the features of a position.
    """
    return max(
        tensor[..., 0].numel() if tensor.is_floating_point() and tensor.ndim > 1 else tensor.numel()
        for tensor in tensors
    )


class TrainedRun(Protocol):
    """A run folder as tasks see it; `neural.training.trained_run` implements it."""

    @property
    def name(self) -> str: ...

    @property
    def path(self) -> Path: ...

    @property
    def settings(self) -> Mapping[str, Any]: ...

    def metadata(self, key: str, default: Any = None) -> Any:
        """The value of `key` in what the task saved with `Task.metadata`."""

    @property
    def working_folder(self) -> Path:
        """The folder that the training was started in; relative paths start there."""

    def scalars(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """(steps, values) of a metric; empty if it was not logged."""

    def load_experiment(self) -> Experiment:
        """The settings of the run, checked."""

    def load_network(self) -> Network:
        """The checked network of the run's program. RunError if it has no program."""

    def load_model(self) -> nn.Module:
        """The model with its best weights, in evaluation mode."""

    def load_task(self) -> Task:
        """The task with its data. TaskError if the data is gone."""

    def best_checkpoint(self) -> str:
        """Name of the checkpoint that `load_model` loads."""


class Prediction(Protocol):
    """The prediction for one document, or for all examples of a file."""

    def to_records(self) -> Iterator[dict[str, Any]]:
        """JSON objects, one per document or example."""

    def to_section(self, width: int) -> PageSection:
        """The text or table to print in a terminal of `width` columns."""


@runtime_checkable
class TabularPrediction(Prediction, Protocol):
    """A prediction that can be written as a table, with a row per example."""

    def to_columns(self) -> dict[str, list[Any]]:
        """Texts and numbers of each column, in the order of the examples."""


@dataclass(frozen=True, repr=False)
class Predictions(Result):
    """Result of `Task.predict` and of `neural.predict`; prints as a table."""

    items: Iterable[Prediction]
    """Predictions in the order of the input; may be a generator, which can be read once."""
    notes: tuple[str, ...] = ()
    """Notes about how the input was read."""

    def to_records(self) -> list[dict[str, Any]]:
        """A dict for every document or example."""
        return [record for prediction in self.items for record in prediction.to_records()]

    def build_dict(self) -> dict[str, Any]:
        """All predictions."""
        return {"predictions": self.to_records(), "notes": self.notes}

    @property
    def tables(self) -> dict[str, Table]:
        """`predictions`: a row per document or example."""
        return {"predictions": Table.from_records(self.to_records())}

    def to_sections(self, width: int) -> list[PageSection]:
        """A table for every document, or one for all examples of a file."""
        return [prediction.to_section(width) for prediction in self.items]


def check_options(
    run: TrainedRun, options: Mapping[str, Any], accepted: Sequence[str] = ()
) -> None:
    """Raise TaskError for an option of `neural evaluate` that the task does not take."""
    for name in options:
        if name not in accepted:
            raise TaskError(
                f"--{name.replace('_', '-')} does not apply to runs of `{run.settings.get('task')}`"
            )


@dataclass(frozen=True, repr=False)
class HeldOutScores(Result):
    """Scores of a task on its own validation data: the default evaluation."""

    run_name: str
    task_name: str
    scores: Mapping[str, float]
    notes: tuple[str, ...] = ()

    def build_dict(self) -> dict[str, Any]:
        """Scores by name."""
        return {"run": self.run_name, "scores": self.scores, "notes": self.notes}

    @property
    def tables(self) -> dict[str, Table]:
        """`scores` by name."""
        return {"scores": Table((Column("score"), Column("value")), list(self.scores.items()))}

    def to_sections(self, width: int) -> list[PageSection]:
        """One table."""
        lines = [f"{self.task_name}, on its held-out data", *(f"note: {n}" for n in self.notes)]
        rows = [
            (name.removeprefix("valid/").replace("_", " "), value)
            for name, value in self.scores.items()
        ]
        return [PageSection(title=self.run_name, text="\n".join(lines), table_rows=rows)]


class Task(ABC):
    """Base class of tasks: data, model, loss and metrics of one experiment."""

    aliases: ClassVar[tuple[str, ...]] = ()
    """Other names for `task:` in an experiment, such as `lm`."""
    Settings: ClassVar[type[Experiment]] = Experiment
    """Schema of the experiment files of this task."""
    monitor: ClassVar[str] = "valid/loss"
    """Metric that selects the best checkpoint and decides early stopping."""
    larger_is_better: ClassVar[bool] = False
    """Whether larger values of `monitor` are better."""
    metadata_fields: ClassVar[Mapping[str, MetadataField]] = {}
    """Types of the task's own keys in `metadata()`; readers of a run check values against them."""

    experiment: Experiment
    """Resolved settings: independent of the working folder, enough to repeat the run."""
    notes: tuple[str, ...] = ()
    """Notes for the user about the data, one sentence each."""

    def __init__(self, experiment: Experiment, folder: Path, catalogue: Catalogue) -> None:
        """Read the data and check it against the network. Raises TaskError before any training.

        Relative paths in the experiment start at `folder`. `catalogue` resolves the names of
        layers and losses in a program.
        """
        self.experiment = experiment

    @property
    def optimizer(self) -> Optimizer:
        """The optimizer to train with."""
        return create_optimizer(self.experiment.training)

    @abstractmethod
    def build(self) -> nn.Module:
        """A new, untrained model. The caller has set the seed."""

    def members(self) -> Sequence[Task]:
        """Tasks of the members of an ensemble, which are trained one after the other.

        Empty, the default: one model is trained. Members differ in their seed and in the name of
        their experiment; `combine` joins their models.
        """
        return ()

    def combine(self, models: Sequence[nn.Module]) -> nn.Module:
        """One model from those of (some of) the `members`, with their weights.

        `build` returns the same kind of model if all of them are combined.
        """
        raise NotImplementedError(f"{type(self).__name__} has no members")

    @property
    @abstractmethod
    def batches_per_epoch(self) -> int:
        """Number of batches in one pass over the training data."""

    @abstractmethod
    def batch(self, index: int) -> Batch:
        """Training batch `index`, from 0; a pure function of the seed and the index."""

    @abstractmethod
    def loss(self, model: nn.Module, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        """Mean loss over the batch, and other metrics to log, as detached scalars by name.

        These metrics are called curves below. `loss_weights` gives the number of targets that the
        means are taken over.
        """

    def loss_terms(
        self, model: nn.Module, batch: Batch
    ) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """The loss as named terms that sum to it, and the same curves as `loss` returns.

        A task overrides this if its loss adds means over different numbers of targets;
        `loss_weights` then has an entry for each term.
        """
        loss, curves = self.loss(model, batch)
        return {"loss": loss}, curves

    def loss_weights(self, batch: Batch) -> dict[str, float]:
        """Number of targets (or sum of their weights) that each mean of `loss` is taken over.

        The engine combines the batches of a step (gradient accumulation, several processes) by
        these weights, so that the result does not depend on how the step is divided. Keys are
        names of terms and curves; a missing one has the weight of "loss". The default is right if
        all batches have equally many targets. Called before the first forward pass of a step.
        """
        return {"loss": 1.0}

    def count_positions(self, batch: Batch) -> int:
        """Number of positions that the model computes for a batch; it decides the threads."""
        return count_positions(batch.values())

    @abstractmethod
    def evaluate(self, model: nn.Module) -> Scores:
        """Metrics on all validation data: `monitor` and others, each named `valid/…`.

        A value that is an array (such as `valid/window_losses`) holds the values that a metric
        averages, in the order of the data. Returns an empty dict without validation data. The
        caller has set evaluation mode and disabled gradients.
        """

    @abstractmethod
    def probe_batch(self) -> Batch:
        """A few fixed examples whose attention is captured during training."""

    @abstractmethod
    def forward(self, model: nn.Module, batch: Batch) -> Tensor:
        """One forward pass of the model on a batch."""

    @property
    def has_held_out(self) -> bool:
        """Whether `held_out_batch` has examples that the model is not trained on."""
        return True

    def held_out_batch(self, count: int) -> Batch:
        """Up to `count` fixed examples that the model is not trained on, with their targets.

        `neural ablate` measures the importance of heads on them. Examples of the training data if
        none is held out. By default those of the probe.
        """
        return self.probe_batch()

    def example_losses(self, model: nn.Module, batch: Batch) -> Tensor:
        """Loss of each example, (B,), or of each of its targets, (B, T); NaN without a target.

        In nats if it is a cross-entropy. Without label smoothing, weights and regularization, so
        that it can be compared between runs. By default a TaskError.
        """
        raise TaskError(
            f"the task `{self.experiment.task}` has no loss for single examples, so the importance "
            "of heads cannot be measured"
        )

    def target_classes(self, batch: Batch) -> Tensor | None:
        """Token or class that each loss of `example_losses` is about; negative without a target.

        None if the targets are not classes.
        """
        return None

    def token_texts(self) -> Sequence[str] | None:
        """Text of each token id, if the targets are the tokens that follow `token_ids`; else None."""
        return None

    def token_ids(self, batch: Batch) -> Tensor | None:
        """Token id of each position, (B, T); None if inputs are not tokens."""
        return None

    def position_labels(self, batch: Batch) -> list[list[str]] | None:
        """Text of each position of each example, for the axes of attention maps; None: numbers."""
        return None

    def metadata(self) -> dict[str, Any]:
        """JSON values that a run saves, such as the vocabulary, for use when the data is gone."""
        return {}

    def pop_events(self) -> list[tuple[str, str]]:
        """Events since the last call as (kind, text), to log and print.

        An example is ("switch", …) when a task changes its loss function during training.
        """
        return []

    def model_summary(self) -> str:
        """Table of the model's modules with their parameters, as text."""
        return ""

    @property
    def program(self) -> str | None:
        """Text of the `.neural` program that defines the network; None if there is none."""
        return None

    @classmethod
    def build_from_settings(cls, experiment: Experiment, catalogue: Catalogue) -> nn.Module | None:
        """Untrained model from the settings of a run alone; None if building needs the data."""
        return None

    @classmethod
    def page_sections(cls, run: SectionRun) -> list[PageSection]:
        """Sections that `neural report` and `neural board` add to the page of a run of this task.

        They are made from the run folder alone, because the data may be gone. Metrics that an
        older version did not log may be missing.
        """
        return []

    @classmethod
    def predict(cls, run: TrainedRun, source: Any) -> Predictions:
        """Predict for the path of a file, or for the bytes of a text. By default a TaskError.

        A task may also accept arrays and data frames from Python.
        """
        raise TaskError(
            f"{run.name} is a run of `{run.settings.get('task')}`, which does not predict from files"
        )

    @classmethod
    def guess(cls, path: Path, overrides: Sequence[str] = ()) -> ExperimentGuess | None:
        """Settings to train this task on a file or folder of data; None if it is other data.

        `neural train DATA` asks all tasks and takes the most certain guess. `overrides` are the
        texts after `--set`. A guess may follow some of them and list these in `used_overrides`;
        the others are applied to its settings. Raises TaskError if the data is clearly for this
        task, but broken.
        """
        return None

    @classmethod
    def describe_input(cls, run: TrainedRun) -> str:
        """The input that `predict` reads, for `neural predict RUN` without one."""
        if cls.predict.__func__ is Task.predict.__func__:  # type: ignore[attr-defined]
            cls.predict(run, "")  # raises TaskError
        return "a file"

    @classmethod
    def evaluate_run(cls, run: TrainedRun, **options: Any) -> Result:
        """Scores on data the model was not trained on; by default those of `evaluate`.

        `options` are the options of `neural evaluate` that the user gave: `data`, `threshold`,
        `decode`, `layout`, `allow_duplicates`. A task refuses those it does not know.
        """
        check_options(run, options)
        task = run.load_task()
        model = run.load_model()
        with torch.no_grad():
            scores, _ = split_scores(task.evaluate(model))
        if not scores:
            raise TaskError(f"{run.name} has no held-out data to score it on")
        return HeldOutScores(run.name, str(run.settings.get("task")), scores, task.notes)

    @classmethod
    def load_generator(cls, run: TrainedRun) -> Any:
        """A text generator, see `TextGenerator`. By default a TaskError."""
        raise TaskError(
            f"{run.name} is a run of `{run.settings.get('task')}`: it generates no text; "
            "name a run of `language_model`"
        )

    @classmethod
    @abstractmethod
    def example(cls, folder: Path, catalogue: Catalogue) -> Task:
        """A minimal working instance with generated data in `folder`.

        The tests that run on every registered task use it. A training step takes milliseconds.
        """

    @classmethod
    def summary(cls) -> str:
        """The first line of the docstring."""
        return (cls.__doc__ or "").strip().partition("\n")[0]
