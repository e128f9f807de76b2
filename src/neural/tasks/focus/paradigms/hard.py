"""Hard attention (Xu et al., 2015): expected loss of one segment sampled by the focus.

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


class Hard(MarginalParadigm):
    """Expected loss over segments: finds the segment slowly, then sharpens the focus fast."""

    def loss(self, batch: SegmentBatch) -> Float[Tensor, " B"]:
        """−Σⱼ aⱼ log pⱼ[y]."""
        return renyi_loss(batch, tau=0.0)
