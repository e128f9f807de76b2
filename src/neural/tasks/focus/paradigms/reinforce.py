"""REINFORCE (Williams, 1992): hard attention by sampling, with a batch-mean baseline.

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
        likelihood, log_a = (
            batch.gather_label(batch.log_probs(index)),
            batch.log_focus.gather(-1, index),
        )
        reward = likelihood.detach()
        count = len(reward)
        baseline = (reward.sum(dim=0) - reward) / max(1, count - 1)
        score_term = (reward - baseline) * (log_a - log_a.detach())  # value 0, gradient of log a
        return -(likelihood + score_term).mean(dim=-1)

    def predict(self, batch: SegmentBatch) -> Float[Tensor, "B C"]:
        """log Σⱼ aⱼ pⱼ, exactly."""
        return batch.mixture_log_probs(self.focus_weights(batch.scores))

    def max_classifier_calls(self, segments: int, samples: int) -> int:
        """The number of draws."""
        return self.draws
