"""Rényi loss: hard attention at τ = 0, marginal likelihood at τ = 1, best segment at τ = ∞.

A paradigm (paradigm.py) is a loss that trains the focus on segments and their classifier together.
aⱼ is the focus weight of segment j, pⱼ its class probabilities, y the label, τ the order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from neural.language.declaration import float_field
from neural.tasks.focus.paradigms._marginal import MarginalParadigm, renyi_loss

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

    from neural.tasks.focus.segment_batch import SegmentBatch


class Renyi(MarginalParadigm):
    """Rényi loss: a large τ finds the segment faster, a small one sharpens the focus faster."""

    tau: float = float_field(
        "Order: 0 is hard attention, 1 marginal likelihood; above 1, segments that predict the "
        "label best count more.",
        default=0.5,
        at_least=0,
        at_most=100,
    )

    def loss(self, batch: SegmentBatch) -> Float[Tensor, " B"]:
        """−(1/τ) log Σⱼ aⱼ pⱼ[y]^τ."""
        return renyi_loss(batch, self.tau)
