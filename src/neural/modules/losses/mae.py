"""Mean absolute error."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neural.language.loss import Loss
from neural.modules.late import functional

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor


class Mae(Loss):
    """The mean of the absolute differences."""

    def measure(self, scores: Float[Tensor, "*B"], target: Float[Tensor, "*B"]) -> Float[Tensor, ""]:
        """Over all positions and units."""
        return functional.l1_loss(scores, target.to(scores.dtype).reshape(scores.shape))
