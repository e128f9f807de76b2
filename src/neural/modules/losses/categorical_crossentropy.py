"""Cross-entropy with probabilities (or one-hot vectors) as targets."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from neural.language.declaration import rate
from neural.language.loss import Loss
from neural.modules.late import functional
from neural.modules.losses.sparse_categorical_crossentropy import one_class_problem

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor


class CategoricalCrossentropy(Loss):
    """Cross-entropy between a target distribution over the classes and the predicted one."""

    fuses: ClassVar[frozenset[str]] = frozenset({"softmax"})

    label_smoothing: float = rate("Share of the target spread over all classes.", default=0.0)

    def head_problem(self, activation: str, units: int | None) -> tuple[str, str] | None:
        """Several classes, one choice."""
        return one_class_problem(activation, units)

    def measure(self, scores: Float[Tensor, "*B C"], target: Float[Tensor, "*B C"]) -> Float[Tensor, ""]:
        """Over all positions."""
        width = scores.shape[-1]
        wanted = target.reshape(-1, width).to(scores.dtype)
        return functional.cross_entropy(scores.reshape(-1, width), wanted, label_smoothing=self.label_smoothing)
