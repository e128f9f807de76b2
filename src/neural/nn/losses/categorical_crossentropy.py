"""Cross-entropy with probabilities (or one-hot vectors) as targets.

A loss declaration (language/loss.py): `fused_activations` are the activations of the output layer
that the loss contains, so that it takes logits; `output_problem` finds output layers that do
not match the loss.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from neural.language.declaration import rate_field
from neural.language.loss import Loss
from neural.nn.lazy_torch import functional
from neural.nn.losses.sparse_categorical_crossentropy import find_class_output_problem

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor


class CategoricalCrossentropy(Loss):
    """Cross-entropy between a target distribution over the classes and the predicted one."""

    fused_activations: ClassVar[frozenset[str]] = frozenset({"softmax"})

    label_smoothing: float = rate_field(
        "Share of the target distributed over all classes.", default=0.0
    )

    def output_problem(self, activation: str, units: int | None) -> tuple[str, str] | None:
        """Why the output layer cannot choose one of several classes, and a way out; or None."""
        return find_class_output_problem(activation, units)

    def compute(
        self, logits: Float[Tensor, "*B C"], target: Float[Tensor, "*B C"]
    ) -> Float[Tensor, ""]:
        """Mean over all positions."""
        width = logits.shape[-1]
        distribution = target.reshape(-1, width).to(logits.dtype)
        return functional.cross_entropy(
            logits.reshape(-1, width), distribution, label_smoothing=self.label_smoothing
        )
