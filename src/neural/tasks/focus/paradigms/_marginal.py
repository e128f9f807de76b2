"""Rényi family of losses: hard attention, marginal likelihood and best segment in one formula.

aⱼ is the focus weight of segment j, pⱼ the class probabilities of the classifier for it, y the
label, and τ the order of the family: 0 is hard attention, 1 the marginal likelihood, ∞ the best
segment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from neural.nn.lazy_torch import torch
from neural.tasks.focus.estimator import UNREAD
from neural.tasks.focus.paradigm import Paradigm

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from torch import Tensor

    from neural.tasks.focus.segment_batch import SegmentBatch

MIN_TAU = 1e-3
"""Below this the formula loses precision, and the limit τ = 0 is used."""


class MarginalParadigm(Paradigm):
    """Base class of paradigms that classify single segments and mix their probabilities."""

    uses_estimator: ClassVar[bool] = True

    def predict(self, batch: SegmentBatch) -> Float[Tensor, "B C"]:
        """log Σⱼ aⱼ pⱼ."""
        return batch.mixture_log_probs(self.focus_weights(batch.scores))

    def max_classifier_calls(self, segments: int, samples: int) -> int:
        """The samples of the estimator."""
        return samples


def renyi_loss(batch: SegmentBatch, tau: float) -> Float[Tensor, " B"]:
    """−(1/τ) log Σⱼ aⱼ pⱼ[y]^τ; at τ = 0 the limit −Σⱼ aⱼ log pⱼ[y].

    Adds `background_loss` if its weight is not 0.
    """
    index, log_w = batch.select_segments()
    log_p = batch.log_probs(index)
    likelihood = batch.gather_label(log_p)
    if tau < MIN_TAU:
        loss = -(log_w.exp() * likelihood).sum(dim=-1)
    else:
        loss = -torch.logsumexp(log_w + tau * likelihood, dim=-1) / tau
    return (
        loss + batch.background * background_loss(batch, index, log_p) if batch.background else loss
    )


def background_loss(
    batch: SegmentBatch, index: Int[Tensor, "B K"] | None, log_p: Float[Tensor, "B K C"]
) -> Float[Tensor, " B"]:
    """Cross-entropy of classified segments with uniform classes, weighted by 1 − focus.

    `index` and `log_p` are the segments selected by the estimator and their log probabilities.

    Without this loss the classifier may assign background to the class that the focus finds last: a
    right prediction for a wrong reason.
    """
    weight = 1 - batch.log_focus.detach().exp()
    if index is not None:
        weight = weight.gather(-1, index.clamp(min=0)) * (index != UNREAD)
    return -(weight * log_p.mean(dim=-1)).sum(dim=-1) / weight.sum(dim=-1).clamp(min=1e-6)
