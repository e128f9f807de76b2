"""Latent variable marginal likelihood (LVML): marginalises over segments (Deng et al., 2018).

A paradigm (paradigm.py) is a loss that trains the focus on segments and their classifier together.
aⱼ is the focus weight of segment j, pⱼ its class probabilities, y the label.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from neural.tasks.focus.paradigms._marginal import MarginalParadigm, renyi_loss

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

    from neural.tasks.focus.segment_batch import SegmentBatch


class Lvml(MarginalParadigm):
    """Marginal likelihood over segments; its gradient is that of a step of EM."""

    def loss(self, batch: SegmentBatch) -> Float[Tensor, " B"]:
        """−log Σⱼ aⱼ pⱼ[y]."""
        return renyi_loss(batch, tau=1.0)
