"""Mean squared error."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neural.language.loss import Loss
from neural.nn.lazy_torch import functional

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor


class Mse(Loss):
    """Mean squared difference of prediction and target."""

    def compute(
        self, scores: Float[Tensor, "*B"], target: Float[Tensor, "*B"]
    ) -> Float[Tensor, ""]:
        """Mean over all positions and units."""
        return functional.mse_loss(scores, target.to(scores.dtype).reshape(scores.shape))
