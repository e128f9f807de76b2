"""Cross-entropy with class indices as targets.

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
    from jaxtyping import Float, Int
    from torch import Tensor


def find_class_output_problem(activation: str, units: int | None) -> tuple[str, str] | None:
    """Why an output layer cannot choose one of several classes, and a way out; None if it can.

    `activation` and `units` are those of the output layer; `units` is None if unknown.
    """
    if units == 1:
        return (
            "one unit cannot choose between classes",
            'use two units, or `sigmoid` with "binary_crossentropy"',
        )
    if activation == "sigmoid":
        return (
            '"sigmoid" treats every class alone, cross-entropy needs one distribution over classes',
            'use "softmax", or the loss "binary_crossentropy"',
        )
    return None


class SparseCategoricalCrossentropy(Loss):
    """Negative log-likelihood of the target class; targets are class indices."""

    fused_activations: ClassVar[frozenset[str]] = frozenset({"softmax"})

    label_smoothing: float = rate_field(
        "Share of the target distributed over all classes.", default=0.0
    )

    def output_problem(self, activation: str, units: int | None) -> tuple[str, str] | None:
        """Why the output layer cannot choose one of several classes, and a way out; or None."""
        return find_class_output_problem(activation, units)

    def compute(
        self, logits: Float[Tensor, "*B C"], target: Int[Tensor, "*B"]
    ) -> Float[Tensor, ""]:
        """Mean over all positions; a target of -100 is ignored."""
        flat = logits.reshape(-1, logits.shape[-1])
        return functional.cross_entropy(
            flat, target.reshape(-1).long(), label_smoothing=self.label_smoothing
        )
