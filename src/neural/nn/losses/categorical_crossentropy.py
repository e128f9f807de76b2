"""Cross-entropy with probabilities (or one-hot vectors) as targets."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from neural.language.declaration import rate_field
from neural.language.loss import Loss
from neural.nn.lazy_torch import functional
from neural.nn.losses.sparse_categorical_crossentropy import find_class_head_problem

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor


class CategoricalCrossentropy(Loss):
    """Cross-entropy between a target distribution over the classes and the predicted one."""

    fuses: ClassVar[frozenset[str]] = frozenset({"softmax"})

    label_smoothing: float = rate_field(
        "Share of the target distributed over all classes.", default=0.0
    )

    def head_problem(self, activation: str, units: int | None) -> tuple[str, str] | None:
        """The head must choose one of several classes."""
        return find_class_head_problem(activation, units)

    def compute(
        self, scores: Float[Tensor, "*B C"], target: Float[Tensor, "*B C"]
    ) -> Float[Tensor, ""]:
        """Mean over all positions."""
        width = scores.shape[-1]
        distribution = target.reshape(-1, width).to(scores.dtype)
        return functional.cross_entropy(
            scores.reshape(-1, width), distribution, label_smoothing=self.label_smoothing
        )
