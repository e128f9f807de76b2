"""Binary cross-entropy of each output unit.

A loss declaration (language/loss.py): `fused_activations` are the activations of the output layer
that the loss contains, so that it takes logits; `output_problem` finds output layers that do
not match the loss.
"""

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

    fused_activations: ClassVar[frozenset[str]] = frozenset({"sigmoid"})

    label_smoothing: float = rate_field("How far targets are moved towards 0.5.", default=0.0)

    def output_problem(self, activation: str, units: int | None) -> tuple[str, str] | None:
        """A problem with softmax, which does not treat units independently, and a way out."""
        if activation == "softmax":
            return (
                '"softmax" is one distribution over all units, '
                '"binary_crossentropy" treats each alone',
                'use "sigmoid", or the loss "categorical_crossentropy"',
            )
        return None

    def compute(
        self, logits: Float[Tensor, "*B"], target: Float[Tensor, "*B"]
    ) -> Float[Tensor, ""]:
        """Mean over all positions and units."""
        smoothed = target.to(logits.dtype) * (1 - self.label_smoothing) + 0.5 * self.label_smoothing
        return functional.binary_cross_entropy_with_logits(logits, smoothed.reshape(logits.shape))
