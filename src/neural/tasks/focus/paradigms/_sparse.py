"""Marginal likelihood with a sparse focus: only segments of nonzero weight are classified.

A paradigm (paradigm.py) is a loss that trains the focus on the segments of an example and the
classifier of segments together. aⱼ is the focus weight of segment j, pⱼ its class probabilities, y
the label. Subclasses choose the function from scores to weights, such as sparsemax.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from neural.nn.lazy_torch import torch
from neural.tasks.focus.paradigm import Paradigm
from neural.tasks.focus.segment_batch import PADDING_SCORE, upcast

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

    from neural.tasks.focus.segment_batch import SegmentBatch


class SparseMarginalParadigm(Paradigm):
    """Base class of the loss −log Σⱼ aⱼ pⱼ[y] over the support: the segments with aⱼ > 0."""

    def focus_weights(self, scores: Float[Tensor, "B m"]) -> Float[Tensor, "B m"]:
        """Weights of the segments by `projection`; many are exactly 0."""
        # Scores 4 or more below the best have weight 0 in any case. Clamping them keeps the sums of
        # squares in the projection small, and so precise.
        shifted = (scores - scores.amax(dim=-1, keepdim=True).detach()).clamp(min=-4.0)
        return self.projection()(shifted)

    def projection(self) -> Callable[[Tensor], Tensor]:
        """The function that maps scores to weights."""
        raise NotImplementedError

    def loss(self, batch: SegmentBatch) -> Float[Tensor, " B"]:
        """−log Σⱼ aⱼ pⱼ[y]."""
        return -batch.gather_label(self.predict(batch))

    def predict(self, batch: SegmentBatch) -> Float[Tensor, "B C"]:
        """log Σⱼ aⱼ pⱼ; all segments of the support are classified in one batch."""
        focus = self.focus_weights(batch.scores)
        example, segment = (focus > 0).nonzero(as_tuple=True)
        log_p = upcast(batch.logits_at(example, segment)).log_softmax(dim=-1)
        log_joint = log_p + focus[example, segment].log().unsqueeze(-1)
        all_segments = log_joint.new_full(
            (*focus.shape, log_joint.shape[-1]), PADDING_SCORE
        ).index_put((example, segment), log_joint)
        return torch.logsumexp(all_segments, dim=1)

    def max_classifier_calls(self, num_segments: int, num_selected: int) -> int:
        """All segments, while the focus is still uniform."""
        return num_segments
