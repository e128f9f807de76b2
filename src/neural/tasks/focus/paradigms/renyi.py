"""Rényi loss: hard attention at τ = 0, marginal likelihood at τ = 1, best segment at τ = ∞."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neural.language.declaration import float_field
from neural.tasks.focus.paradigms._marginal import MarginalParadigm, renyi_loss

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

    from neural.tasks.focus.segment_batch import SegmentBatch


class Renyi(MarginalParadigm):
    """Rényi loss: large τ starts faster with many segments, small τ finishes faster."""

    tau: float = float_field(
        "0: hard attention, 1: marginal likelihood; above 1, better segments weigh more.",
        default=0.5,
        at_least=0,
        at_most=100,
    )

    def loss(self, batch: SegmentBatch) -> Float[Tensor, " B"]:
        """−(1/τ) log Σⱼ aⱼ pⱼ[y]^τ."""
        return renyi_loss(batch, self.tau)
