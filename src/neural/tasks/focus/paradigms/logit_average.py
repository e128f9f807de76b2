"""Logit averaging: the loss of the weighted mean of the logits of all segments.

A paradigm (paradigm.py) is a loss that trains the focus on segments and their classifier g
together. xⱼ is segment j and aⱼ its focus weight, y the label. Some code calls logit averaging a
marginal likelihood, which is wrong: that averages probabilities (lvml.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from neural.nn.lazy_torch import functional
from neural.tasks.focus.paradigm import Paradigm

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

    from neural.tasks.focus.segment_batch import SegmentBatch


class LogitAverage(Paradigm):
    """Softmax of the focus-weighted mean of the logits (a product of experts)."""

    def loss(self, batch: SegmentBatch) -> Float[Tensor, " B"]:
        """−log softmax(Σⱼ aⱼ g(xⱼ))[y]."""
        return -batch.gather_label(self.predict(batch))

    def predict(self, batch: SegmentBatch) -> Float[Tensor, "B C"]:
        """Log-softmax of the mean logits."""
        averaged = (self.focus_weights(batch.scores).unsqueeze(-1) * batch.logits(None)).sum(dim=1)
        return functional.log_softmax(averaged, dim=-1)

    def max_classifier_calls(self, num_segments: int, num_selected: int) -> int:
        """All segments."""
        return num_segments
