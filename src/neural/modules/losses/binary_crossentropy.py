"""Cross-entropy for yes or no, each unit alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from neural.language.declaration import rate
from neural.language.loss import Loss
from neural.modules.late import functional

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor


class BinaryCrossentropy(Loss):
    """Minus the log of the probability given to the right answer, for each unit alone."""

    fuses: ClassVar[frozenset[str]] = frozenset({"sigmoid"})

    label_smoothing: float = rate("How far targets are drawn towards one half.", default=0.0)

    def head_problem(self, activation: str, units: int | None) -> tuple[str, str] | None:
        """Independent answers."""
        if activation == "softmax":
            return (
                '"softmax" makes the units share one probability, "binary_crossentropy" judges each alone',
                'use "sigmoid", or the loss "categorical_crossentropy"',
            )
        return None

    def measure(self, scores: Float[Tensor, "*B"], target: Float[Tensor, "*B"]) -> Float[Tensor, ""]:
        """Over all positions and units."""
        wanted = target.to(scores.dtype) * (1 - self.label_smoothing) + 0.5 * self.label_smoothing
        return functional.binary_cross_entropy_with_logits(scores, wanted.reshape(scores.shape))
