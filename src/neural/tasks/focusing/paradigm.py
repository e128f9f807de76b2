"""What every paradigm promises: one loss, one way to predict, one cost in calls of the classifier."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from neural.language.declaration import Named
from neural.modules.late import functional

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

    from neural.tasks.focusing.segments import Segments


@dataclass(frozen=True)
class Moment:
    """Where a training stands."""

    share: float
    """Of its steps that are done: 0 to 1."""
    stage: int = 0
    """1 once a hybrid has switched."""


class Paradigm(Named):
    """How the focus on segments and the classifier that reads them are joined into one loss."""

    estimated: ClassVar[bool] = False
    """Whether an estimator may choose which segments the classifier reads while learning."""

    informed: ClassVar[bool] = False
    """Whether it needs a third network, which sees the label, to learn."""

    def at(self, moment: Moment) -> Paradigm:
        """What it is at a moment of training; those that do not change are themselves."""
        return self

    def focus(self, scores: Float[Tensor, "B m"]) -> Float[Tensor, "B m"]:
        """How much of the focus each segment has: rows sum to 1."""
        return functional.softmax(scores, dim=-1)

    def loss(self, given: Segments) -> Float[Tensor, " B"]:
        """How wrong the model is about each example."""
        raise NotImplementedError

    def predict(self, given: Segments) -> Float[Tensor, "B C"]:
        """Logarithms of the class probabilities, by mixing as it was trained; exact, whatever the estimator."""
        raise NotImplementedError

    def calls(self, segments: int, samples: int) -> int:
        """Calls of the classifier for the loss of one example, at most; `samples` are those of the estimator."""
        raise NotImplementedError

    @classmethod
    def tiny(cls) -> Paradigm:
        """An instance for the contract tests."""
        return cls()
