"""REINFORCE (Williams, 1992): hard attention by sampling, with a batch-mean baseline.

A paradigm (paradigm.py) is a loss that trains the focus on segments and their classifier together.
aⱼ is the focus weight of segment j, pⱼ its class probabilities. The reward is log pⱼ of the label.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from neural.language.declaration import int_field
from neural.nn.lazy_torch import torch
from neural.tasks.focus.paradigm import Paradigm

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

    from neural.tasks.focus.segment_batch import SegmentBatch


class Reinforce(Paradigm):
    """Hard attention by sampled segments; the focus gradient is weighted by reward − baseline."""

    draws: int = int_field("Segments drawn per example.", default=1)

    def loss(self, batch: SegmentBatch) -> Float[Tensor, " B"]:
        """Loss of the sampled segments; its expected gradient is that of the hard loss.

        The baseline is the mean reward of the other examples. It is independent of the sample, so
        it adds no bias.
        """
        index = torch.multinomial(batch.log_focus.detach().exp(), self.draws, replacement=True)
        log_likelihood = batch.gather_label(batch.log_probs(index))
        log_a = batch.log_focus.gather(-1, index)
        reward = log_likelihood.detach()
        baseline = (reward.sum(dim=0) - reward) / max(1, len(reward) - 1)
        # `log_a - log_a.detach()` has the value 0 and the gradient of log a.
        score_term = (reward - baseline) * (log_a - log_a.detach())
        return -(log_likelihood + score_term).mean(dim=-1)

    def predict(self, batch: SegmentBatch) -> Float[Tensor, "B C"]:
        """log Σⱼ aⱼ pⱼ over all segments, without sampling."""
        return batch.mixture_log_probs(self.focus_weights(batch.scores))

    def max_classifier_calls(self, num_segments: int, num_selected: int) -> int:
        """The number of draws."""
        return self.draws
