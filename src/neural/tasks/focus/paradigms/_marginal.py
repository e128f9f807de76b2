"""Rényi family of losses: hard attention, marginal likelihood and best segment in one formula.

A paradigm (paradigm.py) is a loss that trains the focus on the segments of an example and the
classifier of segments together. aⱼ is the focus weight of segment j, pⱼ its class probabilities, y
the label, and τ the order of the family: 0 is hard attention, 1 the marginal likelihood, ∞ the best
segment. In training, an estimator (estimator.py) may replace the sums over all segments by weighted
sums over few.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from neural.nn.lazy_torch import torch
from neural.tasks.focus.estimator import NO_SEGMENT
from neural.tasks.focus.paradigm import Paradigm

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from torch import Tensor

    from neural.tasks.focus.segment_batch import SegmentBatch

MIN_TAU = 1e-3
"""Below this order the formula loses precision, and the limit τ = 0 is used instead."""


class MarginalParadigm(Paradigm):
    """Base class of paradigms that classify single segments and mix their probabilities."""

    uses_estimator: ClassVar[bool] = True

    def predict(self, batch: SegmentBatch) -> Float[Tensor, "B C"]:
        """log Σⱼ aⱼ pⱼ."""
        return batch.mixture_log_probs(self.focus_weights(batch.scores))

    def max_classifier_calls(self, num_segments: int, num_selected: int) -> int:
        """As many as the estimator selects."""
        return num_selected


def renyi_loss(batch: SegmentBatch, tau: float) -> Float[Tensor, " B"]:
    """−(1/τ) log Σⱼ aⱼ pⱼ[y]^τ; at τ = 0 the limit −Σⱼ aⱼ log pⱼ[y].

    Adds `background_loss` if its weight is not 0.
    """
    index, log_w = batch.select_segments()
    log_p = batch.log_probs(index)
    log_likelihood = batch.gather_label(log_p)
    if tau < MIN_TAU:
        loss = -(log_w.exp() * log_likelihood).sum(dim=-1)
    else:
        loss = -torch.logsumexp(log_w + tau * log_likelihood, dim=-1) / tau
    if batch.background_weight:
        loss = loss + batch.background_weight * background_loss(batch, index, log_p)
    return loss


def background_loss(
    batch: SegmentBatch, index: Int[Tensor, "B K"] | None, log_p: Float[Tensor, "B K C"]
) -> Float[Tensor, " B"]:
    """Cross-entropy of predictions with a uniform target; segments are weighted by 1 − focus.

    `index` are the segments selected by the estimator (None: all), `log_p` their log probabilities.

    Without this loss the classifier may learn to predict one of the classes from segments without
    information. Then examples of this class are predicted correctly, but the focus never has to
    find their deciding segment.
    """
    weight = 1 - batch.log_focus.detach().exp()
    if index is not None:
        weight = weight.gather(-1, index.clamp(min=0)) * (index != NO_SEGMENT)
    return -(weight * log_p.mean(dim=-1)).sum(dim=-1) / weight.sum(dim=-1).clamp(min=1e-6)
