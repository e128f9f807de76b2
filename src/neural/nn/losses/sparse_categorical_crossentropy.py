"""Cross-entropy with class indices as targets."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from neural.language.declaration import rate_field
from neural.language.loss import Loss
from neural.nn.lazy_torch import functional

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from torch import Tensor


def find_class_head_problem(activation: str, units: int | None) -> tuple[str, str] | None:
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

    fuses: ClassVar[frozenset[str]] = frozenset({"softmax"})  # activations that the loss contains

    label_smoothing: float = rate_field(
        "Share of the target distributed over all classes.", default=0.0
    )

    def head_problem(self, activation: str, units: int | None) -> tuple[str, str] | None:
        """The output layer (head) must choose one of several classes."""
        return find_class_head_problem(activation, units)

    def compute(
        self, scores: Float[Tensor, "*B C"], target: Int[Tensor, "*B"]
    ) -> Float[Tensor, ""]:
        """Mean over all positions; a target of -100 is ignored. `scores` are logits."""
        flat = scores.reshape(-1, scores.shape[-1])
        return functional.cross_entropy(
            flat, target.reshape(-1).long(), label_smoothing=self.label_smoothing
        )
