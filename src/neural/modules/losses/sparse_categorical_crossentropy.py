"""Cross-entropy with class numbers as targets."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from neural.language.declaration import rate
from neural.language.loss import Loss
from neural.modules.late import functional

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from torch import Tensor


def one_class_problem(activation: str, units: int | None) -> tuple[str, str] | None:
    """Why a head cannot choose one class of several."""
    if units == 1:
        return "one unit cannot choose between classes", 'use two units, or `sigmoid` with "binary_crossentropy"'
    if activation == "sigmoid":
        return (
            '"sigmoid" judges every class alone, cross-entropy over classes wants one choice',
            'use "softmax", or the loss "binary_crossentropy"',
        )
    return None


class SparseCategoricalCrossentropy(Loss):
    """Minus the log of the probability given to the right class; targets are class numbers."""

    fuses: ClassVar[frozenset[str]] = frozenset({"softmax"})

    label_smoothing: float = rate("Share of the target spread over all classes.", default=0.0)

    def head_problem(self, activation: str, units: int | None) -> tuple[str, str] | None:
        """Several classes, one choice."""
        return one_class_problem(activation, units)

    def measure(self, scores: Float[Tensor, "*B C"], target: Int[Tensor, "*B"]) -> Float[Tensor, ""]:
        """Over all positions; a target of -100 does not count."""
        flat = scores.reshape(-1, scores.shape[-1])
        return functional.cross_entropy(flat, target.reshape(-1).long(), label_smoothing=self.label_smoothing)
