"""The labels against the loss: what they must be, how a batch of them is judged, and the score beside the loss.

What a loss compares with is read from it: `Int` in the signature of `measure` means class numbers, softmax a
distribution over classes, sigmoid yes or no for every unit, anything else plain values.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from neural.core.names import snake
from neural.language.loss import Loss
from neural.language.shapes import show
from neural.modules.late import functional, torch
from neural.tasks.data.check import check_finite, check_whole, first, sizes
from neural.tasks.task import TaskError

if TYPE_CHECKING:
    from torch import Tensor

IGNORED = -100
"""The class number that does not count, as in torch."""


def targets_of(loss: Loss, output: tuple[int, ...]) -> Targets:
    """What a loss wants beside predictions of shape `output`."""
    if str(type(loss).measure.__annotations__["target"]).startswith("Int"):
        kind: type[Targets] = Classes
    elif "softmax" in loss.fuses:
        kind = Distributions
    elif "sigmoid" in loss.fuses:
        kind = Answers
    else:
        kind = Values
    return kind(loss, output)


@dataclass(frozen=True)
class Targets(ABC):
    """One kind of label."""

    loss: Loss
    output: tuple[int, ...]
    """The shape of one prediction, units last."""
    score: ClassVar[str]
    """The name of the score beside the loss."""

    @property
    def places(self) -> tuple[int, ...]:
        """The shape of the positions that one prediction has: () where it is about the whole example."""
        return self.output[:-1]

    @abstractmethod
    def fit(self, y: np.ndarray, name: str) -> np.ndarray:
        """The labels in the shape that the loss compares; TaskError where they cannot be meant."""

    @abstractmethod
    def right(self, scores: Tensor, y: Tensor, head: Callable[[Tensor], Tensor]) -> Tensor:
        """The score of every prediction that counts, flat; `head` makes predictions of scores."""

    def dtype(self, y: np.ndarray) -> torch.dtype:
        """What the labels are as a tensor."""
        return torch.float32

    def ready(self, y: Tensor) -> Tensor:
        """A batch of labels as the loss takes it."""
        return y

    def named(self) -> str:
        """The loss as a program writes it."""
        return f'"{snake(type(self.loss).__name__)}"'

    def refuse(self, y: np.ndarray, name: str, wanted: str, help_: str = "") -> TaskError:
        """A shape that does not fit."""
        return TaskError(f"{name} is {sizes(y)}, but {self.named()} compares {wanted}{help_ and '; ' + help_}")

    def squeezed(self, y: np.ndarray, shape: tuple[int, ...]) -> np.ndarray | None:
        """The labels in that shape, a last axis of 1 added or taken away; None where they have another."""
        for tried in (y.shape, (*y.shape, 1), y.shape[:-1] if y.shape[-1] == 1 else ()):
            if tried[1:] == shape and len(tried) == len(shape) + 1:
                return y.reshape(tried)
        return None


class Classes(Targets):
    """A class number for every prediction."""

    score = "accuracy"

    def fit(self, y: np.ndarray, name: str) -> np.ndarray:
        """Whole numbers below the number of units; -100 does not count where there are positions."""
        fitted = self.squeezed(y, self.places)
        if fitted is None:
            one_hot = y.shape[1:] == self.output
            help_ = 'write `loss: "categorical_crossentropy"` for one-hot labels' if one_hot else ""
            raise self.refuse(y, name, f"class numbers of shape {show(self.places, batch=True)}", help_)
        check_numbers(fitted, name)
        count = self.output[-1]
        check_whole(fitted, name, count, f"the network has {count} classes", besides=IGNORED if self.places else 0)
        if self.places:
            every = tuple(range(1, fitted.ndim))
            empty = first(fitted, lambda part: (part == IGNORED).all(axis=every))
            if empty is not None:
                raise TaskError(f"{name}: example {empty[0]} holds nothing but {IGNORED}; remove it")
        return fitted

    def dtype(self, y: np.ndarray) -> torch.dtype:
        """Whole numbers."""
        return torch.int64

    def right(self, scores: Tensor, y: Tensor, head: Callable[[Tensor], Tensor]) -> Tensor:
        """Whether the likeliest class is the true one."""
        counted = y != IGNORED
        return (scores.argmax(dim=-1) == y)[counted].float()


class Distributions(Targets):
    """A probability for every class: one-hot vectors, or class numbers that are turned into them."""

    score = "accuracy"

    def fit(self, y: np.ndarray, name: str) -> np.ndarray:
        """Class numbers stay numbers until a batch is made of them."""
        numbers = self.squeezed(y, self.places)
        if y.shape[1:] != self.output and numbers is not None:
            check_numbers(numbers, name)
            check_whole(numbers, name, self.output[-1], f"the network has {self.output[-1]} classes")
            return numbers
        if y.shape[1:] != self.output:
            shapes = f"{show(self.output, batch=True)}, or class numbers of shape {show(self.places, batch=True)}"
            raise self.refuse(y, name, f"one-hot labels of shape {shapes}")
        check_numbers(y, name)
        place = first(y, lambda part: (part < 0) | (abs(part.sum(axis=-1, keepdims=True) - 1) > 1e-3))
        if place is not None:
            shown = list(place[:-1])
            raise TaskError(f"{name} is no distribution at {shown}: {y[place[:-1]]} must be 0 or more and sum to 1")
        return y

    def dtype(self, y: np.ndarray) -> torch.dtype:
        """Whole numbers where they are class numbers."""
        return torch.float32 if y.shape[1:] == self.output else torch.int64

    def ready(self, y: Tensor) -> Tensor:
        """One-hot."""
        return y if y.is_floating_point() else functional.one_hot(y, self.output[-1]).to(torch.float32)

    def right(self, scores: Tensor, y: Tensor, head: Callable[[Tensor], Tensor]) -> Tensor:
        """Whether the likeliest class is the likeliest one of the labels."""
        return (scores.argmax(dim=-1) == y.argmax(dim=-1)).flatten().float()


class Answers(Targets):
    """Yes or no for every unit."""

    score = "accuracy"

    def fit(self, y: np.ndarray, name: str) -> np.ndarray:
        """0 or 1."""
        fitted = self.squeezed(y, self.output)
        if fitted is None:
            raise self.refuse(y, name, f"0 or 1 for every unit: {show(self.output, batch=True)}")
        check_numbers(fitted, name)
        place = first(fitted, lambda part: (part != 0) & (part != 1))
        if place is not None:
            raise TaskError(f"{name} has {fitted[place]} at {list(place)}, but {self.named()} takes 0 or 1")
        return fitted

    def right(self, scores: Tensor, y: Tensor, head: Callable[[Tensor], Tensor]) -> Tensor:
        """Whether the likelier answer is the true one; the scores are log-odds."""
        return ((scores > 0) == (y > 0.5)).flatten().float()


class Values(Targets):
    """Numbers to come near to."""

    score = "mae"

    def fit(self, y: np.ndarray, name: str) -> np.ndarray:
        """As many as the network predicts."""
        fitted = self.squeezed(y, self.output)
        if fitted is None:
            raise self.refuse(y, name, f"what the network predicts: {show(self.output, batch=True)}")
        check_numbers(fitted, name)
        return fitted

    def right(self, scores: Tensor, y: Tensor, head: Callable[[Tensor], Tensor]) -> Tensor:
        """How far off."""
        return (head(scores) - y).abs().flatten()


def check_numbers(y: np.ndarray, name: str) -> None:
    """Refuse words and what is not finite."""
    if y.dtype.kind not in "biuf":
        raise TaskError(f"{name} holds {y.dtype}, not numbers; number the classes from 0")
    check_finite(y, name)
