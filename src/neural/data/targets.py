"""Kinds of labels: how they are checked and converted for the loss, and which metric they have.

The kind follows from the loss: `Int` in the signature of `compute` means class numbers. Else a loss
that contains the softmax (`fused_activations`) takes a distribution over classes, one that contains
the sigmoid takes 0 or 1 for every unit of the output layer, any other loss takes real values. The
output of a network has the shape (positions…, units); a classifier of complete sequences has no
position axes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from neural.core.errors import TaskError
from neural.core.names import to_snake_case
from neural.data.input_checks import check_finite, check_integers, find_first, format_array_shape
from neural.language.loss import Loss
from neural.language.shapes import format_shape
from neural.nn.lazy_torch import functional, torch

if TYPE_CHECKING:
    from torch import Tensor

IGNORE_INDEX = -100
"""Label that is ignored by loss and metric, as in torch."""


def takes_classes(loss: Loss) -> bool:
    """Whether the labels are classes, which may have names; else they are numbers to predict."""
    return not isinstance(select_targets(loss, (1,)), ValueTargets)


def select_targets(loss: Loss, output: tuple[int, ...]) -> Targets:
    """The kind of labels that a loss takes for predictions of shape `output`, without the batch."""
    if str(type(loss).compute.__annotations__["target"]).startswith("Int"):
        targets_class: type[Targets] = ClassTargets
    elif "softmax" in loss.fused_activations:
        targets_class = DistributionTargets
    elif "sigmoid" in loss.fused_activations:
        targets_class = BinaryTargets
    else:
        targets_class = ValueTargets
    return targets_class(loss, output)


@dataclass(frozen=True)
class Targets(ABC):
    """Base class of the kinds of labels."""

    loss: Loss
    output: tuple[int, ...]
    """Shape of the prediction for one example, units last."""
    metric: ClassVar[str]
    """Name of the metric: accuracy, or mae (mean absolute error)."""

    @property
    def position_shape(self) -> tuple[int, ...]:
        """Shape of the positions that are predicted; () for one prediction per example."""
        return self.output[:-1]

    @abstractmethod
    def prepare(self, y: np.ndarray, name: str) -> np.ndarray:
        """Labels in the shape that the loss takes. Raises TaskError if they do not fit.

        `name` is that of the labels in messages.
        """

    @abstractmethod
    def score_predictions(
        self, logits: Tensor, y: Tensor, activation: Callable[[Tensor], Tensor]
    ) -> Tensor:
        """The metric of every prediction that is not ignored, as a 1-D tensor.

        `activation` maps logits to predictions.
        """

    def dtype(self, y: np.ndarray) -> torch.dtype:
        """Tensor dtype of the labels."""
        return torch.float32

    def to_loss_target(self, y: Tensor) -> Tensor:
        """A batch of labels in the form that the loss takes."""
        return y

    def loss_name(self) -> str:
        """The loss as written in a program, quoted."""
        return f'"{to_snake_case(type(self.loss).__name__)}"'

    def shape_error(self, y: np.ndarray, name: str, expected: str, hint: str = "") -> TaskError:
        """The error for labels of a wrong shape."""
        return TaskError(
            f"{name} is {format_array_shape(y)}, but {self.loss_name()} takes {expected}"
            f"{hint and '; ' + hint}"
        )

    def match_shape(self, y: np.ndarray, shape: tuple[int, ...]) -> np.ndarray | None:
        """Labels reshaped to `shape` by adding or removing a last axis of 1; None if impossible."""
        for candidate in (y.shape, (*y.shape, 1), y.shape[:-1] if y.shape[-1] == 1 else ()):
            if candidate[1:] == shape and len(candidate) == len(shape) + 1:
                return y.reshape(candidate)
        return None


class ClassTargets(Targets):
    """A class number for every prediction."""

    metric = "accuracy"

    def prepare(self, y: np.ndarray, name: str) -> np.ndarray:
        """Check for integers below the number of units; with positions also -100 (ignored)."""
        labels = self.match_shape(y, self.position_shape)
        if labels is None:
            is_one_hot = y.shape[1:] == self.output
            hint = (
                'write `loss: "categorical_crossentropy"` for one-hot labels' if is_one_hot else ""
            )
            raise self.shape_error(
                y,
                name,
                f"class numbers of shape {format_shape(self.position_shape, batch=True)}",
                hint,
            )
        check_numbers(labels, name)
        num_classes = self.output[-1]
        check_integers(
            labels,
            name,
            num_classes,
            f"the network has {num_classes} classes",
            # -100 may stand at some positions, but not be the only label. 0 is accepted anyway.
            extra_value=IGNORE_INDEX if self.position_shape else 0,
        )
        if self.position_shape:
            position_axes = tuple(range(1, labels.ndim))
            ignored_example = find_first(
                labels, lambda block: (block == IGNORE_INDEX).all(axis=position_axes)
            )
            if ignored_example is not None:
                raise TaskError(
                    f"{name}: example {ignored_example[0]} holds only {IGNORE_INDEX}; remove it"
                )
        return labels

    def dtype(self, y: np.ndarray) -> torch.dtype:
        """int64."""
        return torch.int64

    def score_predictions(
        self, logits: Tensor, y: Tensor, activation: Callable[[Tensor], Tensor]
    ) -> Tensor:
        """1 where the most likely class is the label, else 0."""
        is_counted = y != IGNORE_INDEX
        return (logits.argmax(dim=-1) == y)[is_counted].float()


class DistributionTargets(Targets):
    """A probability for every class: distributions, or class numbers, made one-hot per batch."""

    metric = "accuracy"

    def prepare(self, y: np.ndarray, name: str) -> np.ndarray:
        """Check distributions or class numbers, which `to_loss_target` makes one-hot."""
        class_numbers = self.match_shape(y, self.position_shape)
        if y.shape[1:] != self.output and class_numbers is not None:
            check_numbers(class_numbers, name)
            check_integers(
                class_numbers, name, self.output[-1], f"the network has {self.output[-1]} classes"
            )
            return class_numbers
        if y.shape[1:] != self.output:
            raise self.shape_error(
                y,
                name,
                f"one-hot labels of shape {format_shape(self.output, batch=True)}, or class "
                f"numbers of shape {format_shape(self.position_shape, batch=True)}",
            )
        check_numbers(y, name)
        position = find_first(
            y, lambda block: (block < 0) | (abs(block.sum(axis=-1, keepdims=True) - 1) > 1e-3)
        )
        if position is not None:
            shown = list(position[:-1])  # without the class
            raise TaskError(
                f"{name} is not a distribution at {shown}: {y[position[:-1]]} must be at least 0 "
                "and sum to 1"
            )
        return y

    def dtype(self, y: np.ndarray) -> torch.dtype:
        """int64 for class numbers, float32 for distributions."""
        return torch.float32 if y.shape[1:] == self.output else torch.int64

    def to_loss_target(self, y: Tensor) -> Tensor:
        """Distributions; class numbers become one-hot."""
        return (
            y if y.is_floating_point() else functional.one_hot(y, self.output[-1]).to(torch.float32)
        )

    def score_predictions(
        self, logits: Tensor, y: Tensor, activation: Callable[[Tensor], Tensor]
    ) -> Tensor:
        """1 where the most likely class is the most likely class of the label, else 0."""
        return (logits.argmax(dim=-1) == y.argmax(dim=-1)).flatten().float()


class BinaryTargets(Targets):
    """0 or 1 for every unit."""

    metric = "accuracy"

    def prepare(self, y: np.ndarray, name: str) -> np.ndarray:
        """Check for 0 and 1."""
        labels = self.match_shape(y, self.output)
        if labels is None:
            raise self.shape_error(
                y, name, f"0 or 1 for every unit: {format_shape(self.output, batch=True)}"
            )
        check_numbers(labels, name)
        position = find_first(labels, lambda block: (block != 0) & (block != 1))
        if position is not None:
            raise TaskError(
                f"{name} has {labels[position]} at {list(position)}, but {self.loss_name()} takes "
                "0 or 1"
            )
        return labels

    def score_predictions(
        self, logits: Tensor, y: Tensor, activation: Callable[[Tensor], Tensor]
    ) -> Tensor:
        """1 where the sign of the logit agrees with the label, else 0."""
        return ((logits > 0) == (y > 0.5)).flatten().float()


class ValueTargets(Targets):
    """Real values: regression."""

    metric = "mae"

    def prepare(self, y: np.ndarray, name: str) -> np.ndarray:
        """Check that there is one value per predicted unit."""
        labels = self.match_shape(y, self.output)
        if labels is None:
            raise self.shape_error(
                y, name, f"the shape of the predictions: {format_shape(self.output, batch=True)}"
            )
        check_numbers(labels, name)
        return labels

    def score_predictions(
        self, logits: Tensor, y: Tensor, activation: Callable[[Tensor], Tensor]
    ) -> Tensor:
        """Absolute error."""
        return (activation(logits) - y).abs().flatten()


def check_numbers(y: np.ndarray, name: str) -> None:
    """Raise TaskError for labels that are not finite numbers."""
    if y.dtype.kind not in "biuf":
        raise TaskError(f"{name} holds {y.dtype}, not numbers; number the classes from 0")
    check_finite(y, name)
