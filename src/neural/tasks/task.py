"""What every task promises: batches, a loss, scores. The engine knows nothing else of it.

Batches are counted, not drawn: `batch(17)` is the same for ever under one seed, whatever was asked before it and
however many processes share the work. So a run that was killed goes on bit for bit, and two processes see what one
would have seen.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from neural.tasks.experiment import Experiment

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch import Tensor, nn

    from neural.language.catalogue import Catalogue

    Batch = Mapping[str, Tensor]
    """Named tensors, the examples along the first axis of each."""
    Scores = dict[str, Any]
    """Numbers by name, and arrays: what the numbers are means of, for those who compare."""


class TaskError(ValueError):
    """The data or the network cannot be used as asked; the message says why and what to do."""


def split_scores(scores: Scores) -> tuple[dict[str, float], dict[str, np.ndarray]]:
    """What `Task.evaluate` gave: the numbers, and the arrays that some of them are means of."""
    arrays = {name: value for name, value in scores.items() if isinstance(value, np.ndarray)}
    return {name: value for name, value in scores.items() if name not in arrays}, arrays


class Task(ABC):
    """What is learned, from what, and what counts as wrong."""

    Settings: ClassVar[type[Experiment]] = Experiment
    """What an experiment file of this task may say."""
    watched: ClassVar[str] = "valid/loss"
    """The score that decides which checkpoint is best and when to stop."""
    larger_is_better: ClassVar[bool] = False

    experiment: Experiment
    """All settings, resolved: it means the same from any folder, and a run can be made again from it alone."""
    remarks: tuple[str, ...] = ()
    """What is worth knowing about the data before training, a sentence each."""

    def __init__(self, experiment: Experiment, folder: Path, catalogue: Catalogue) -> None:
        """Read the data and check it against the network; paths in the experiment are seen from `folder`.

        `catalogue` is where the names in a program are looked up. Raises TaskError, before anything is trained or
        written.
        """
        self.experiment = experiment

    @abstractmethod
    def build(self) -> nn.Module:
        """A new model. The engine has set the seed."""

    @property
    @abstractmethod
    def epoch(self) -> int:
        """Batches that go once through the training data."""

    @abstractmethod
    def batch(self, index: int) -> Batch:
        """The training batch of that number, from 0; a pure function of the seed and the number."""

    @abstractmethod
    def loss(self, model: nn.Module, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        """The mean loss over the batch, and what else is worth a curve: scalars, detached.

        `loss_weights` says what the mean is taken over.
        """

    def loss_terms(
        self, model: nn.Module, batch: Batch
    ) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """The loss as named terms whose sum it is, and the same curves as `loss` gives.

        A task overrides this where its loss adds means over different things; `loss_weights` has
        an entry for each term then.
        """
        loss, curves = self.loss(model, batch)
        return {"loss": loss}, curves

    def loss_weights(self, batch: Batch) -> dict[str, float]:
        """What the means of `loss` are taken over, by name: targets, or the sum of their weights.

        The engine combines the batches of a step (gradient accumulation, several processes) by
        these weights, so that the result does not depend on how the step was cut. Names are those
        of the terms and curves; what is missing weighs as "loss" does. The default is right where
        every batch has as many targets as any other. Needs no model: it is asked before the first
        forward pass of the step.
        """
        return {"loss": 1.0}

    @abstractmethod
    def evaluate(self, model: nn.Module) -> Scores:
        """Scores on all of the validation data, in a fixed order: `watched` and others, each named `valid/…`.

        An array among them holds what a score is the mean of, in the order of the data (`valid/window_losses`).

        The engine has put the model into evaluation mode and turned gradients off. Empty without validation data.
        """

    @abstractmethod
    def probe(self) -> Batch:
        """A few fixed examples to look at while learning."""

    @abstractmethod
    def look(self, model: nn.Module, batch: Batch) -> Tensor:
        """One forward pass of the model."""

    def tokens(self, batch: Batch) -> Tensor | None:
        """Which token each position of a batch is, where there are tokens: (B, T)."""
        return None

    def labels(self, batch: Batch) -> list[list[str]] | None:
        """What to write beside the rows of a map, per example and position."""
        return None

    def facts(self) -> dict[str, Any]:
        """What a reader of the run needs to know without the data, such as the vocabulary; plain data."""
        return {}

    def news(self) -> list[tuple[str, str]]:
        """What happened once since this was last asked, as the kind and the text of an event: a switch of the loss."""
        return []

    def layout(self) -> str:
        """What is trained, part by part with its parameters, as a table to read."""
        return ""

    @property
    def program(self) -> str | None:
        """The network as a program, where it is one."""
        return None

    @classmethod
    def without_data(cls, experiment: Experiment, catalogue: Catalogue) -> nn.Module | None:
        """The network of settings that a run kept, untrained, where they are enough: the data may be gone."""
        return None

    @classmethod
    @abstractmethod
    def tiny(cls, folder: Path, catalogue: Catalogue) -> Task:
        """The smallest real instance, made from nothing, in `folder`: trains a step in milliseconds."""

    @classmethod
    def summary(cls) -> str:
        """The first line of the docstring."""
        return (cls.__doc__ or "").strip().partition("\n")[0]
