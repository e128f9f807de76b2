"""Binary cross-entropy of each unit."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from neural.language.declaration import rate_field
from neural.language.loss import Loss
from neural.nn.lazy_torch import functional

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor


class BinaryCrossentropy(Loss):
    """Negative log-likelihood of a binary label, for each unit independently."""

    fuses: ClassVar[frozenset[str]] = frozenset({"sigmoid"})

    label_smoothing: float = rate_field("How far targets are moved towards 0.5.", default=0.0)

    def head_problem(self, activation: str, units: int | None) -> tuple[str, str] | None:
        """Softmax does not match independent units."""
        if activation == "softmax":
            return (
                '"softmax" is one distribution over all units, '
                '"binary_crossentropy" treats each alone',
                'use "sigmoid", or the loss "categorical_crossentropy"',
            )
        return None

    def compute(
        self, scores: Float[Tensor, "*B"], target: Float[Tensor, "*B"]
    ) -> Float[Tensor, ""]:
        """Mean over all positions and units."""
        smoothed = target.to(scores.dtype) * (1 - self.label_smoothing) + 0.5 * self.label_smoothing
        return functional.binary_cross_entropy_with_logits(scores, smoothed.reshape(scores.shape))
