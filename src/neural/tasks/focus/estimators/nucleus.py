"""Nucleus: the segments that hold most of the focus, and one sampled from the rest.

An estimator (estimator.py) selects the segments of an example that are classified in training, and
their weights in the loss. The nucleus is the fewest segments that hold a given share of the focus
(as in nucleus sampling); the tail is the rest. Early in training the nucleus is nearly all
segments, later only a few.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from neural.language.declaration import float_field
from neural.nn.lazy_torch import functional, torch
from neural.tasks.focus.estimator import NO_SEGMENT, Estimator
from neural.tasks.focus.segment_batch import PADDING_SCORE

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from torch import Tensor


class Nucleus(Estimator):
    """Exact sum over the nucleus, and one sample for the tail."""

    mass: float = float_field(
        "Share of the focus that the nucleus holds.", default=0.95, above=0, below=1
    )

    def choose(
        self, log_focus: Float[Tensor, "B m"], samples: int
    ) -> tuple[Int[Tensor, "B K"] | None, Float[Tensor, "B K"]]:
        """Indices and log weights of the segments to classify; see `Estimator.choose`.

        `samples` is the largest number of segments per example; a sharp focus needs fewer. Unused
        entries have the index NO_SEGMENT.
        """
        log_a, m = log_focus.detach(), log_focus.shape[-1]
        max_exact = m if samples >= m else samples - 1  # the last one is the sample of the tail
        top = log_a.topk(max_exact, dim=-1)
        mass_before = top.values.exp().cumsum(dim=-1) - top.values.exp()
        # Padding has a log focus near PADDING_SCORE; real segments are far above half of it.
        in_nucleus = (mass_before < self.mass) & (top.values > PADDING_SCORE / 2)
        width = int(in_nucleus.sum(dim=-1).max())
        index = top.indices.masked_fill(~in_nucleus, NO_SEGMENT)[:, :width]
        log_w = log_focus.gather(-1, top.indices[:, :width]).masked_fill(
            ~in_nucleus[:, :width], PADDING_SCORE
        )
        # One sample from the tail, if there is one. Its distribution q is the focus restricted to
        # the tail and normalized; its weight is a / q.
        is_exact = torch.zeros_like(log_a, dtype=torch.bool).scatter(-1, top.indices, in_nucleus)
        tail_log_a = log_a.masked_fill(is_exact, PADDING_SCORE)
        has_tail = (tail_log_a > PADDING_SCORE / 2).any(dim=-1, keepdim=True)
        log_q = functional.log_softmax(tail_log_a, dim=-1)
        tail_sample = sample_rows(log_q.exp())
        log_tail_weight = log_focus.gather(-1, tail_sample) - log_q.gather(-1, tail_sample)
        index = torch.cat([index, tail_sample.masked_fill(~has_tail, NO_SEGMENT)], dim=-1)
        return index, torch.cat(
            [log_w, log_tail_weight.masked_fill(~has_tail, PADDING_SCORE)], dim=-1
        )


def sample_rows(weights: Float[Tensor, "B m"]) -> Int[Tensor, "B 1"]:
    """Sample one index per row by its weights, with one random number per row.

    `torch.multinomial` draws one random number per weight, which is slower.
    """
    cumulative = weights.cumsum(dim=-1)
    # Strictly below the total, so that trailing entries of weight 0 are never chosen.
    threshold = torch.rand_like(cumulative[:, :1]) * (1 - 1e-6) * cumulative[:, -1:]
    return torch.searchsorted(cumulative, threshold, right=True)
