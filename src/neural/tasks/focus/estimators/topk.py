"""Top-k segments by focus, plus a few samples of the rest, the tail.

An estimator (estimator.py) selects the segments of an example that are classified in training, and
their weights in the loss.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from neural.language.declaration import float_field
from neural.nn.lazy_torch import functional, torch
from neural.tasks.focus.estimator import Estimator
from neural.tasks.focus.segment_batch import PADDING_SCORE

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from torch import Tensor


class Topk(Estimator):
    """Exact sum over the largest weights; the tail is importance-sampled by its focus."""

    tail: float = float_field(
        "Share of the samples taken from the tail; at least one.",
        default=0.25,
        above=0,
        at_most=1,
    )

    def choose(
        self, log_focus: Float[Tensor, "B m"], samples: int
    ) -> tuple[Int[Tensor, "B K"] | None, Float[Tensor, "B K"]]:
        """Indices and log weights of the segments to classify; see `Estimator.choose`.

        A segment of the top has its focus a as weight; a sampled one has a / (S q), for S samples
        from the distribution q of the tail.
        """
        if samples >= log_focus.shape[-1]:
            return None, log_focus  # all segments
        tail_samples = min(samples, max(1, round(samples * self.tail)))
        log_a = log_focus.detach()
        top_index = log_a.topk(samples - tail_samples, dim=-1).indices
        log_q = functional.log_softmax(log_a.scatter(-1, top_index, PADDING_SCORE), dim=-1)
        index = torch.cat(
            [top_index, torch.multinomial(log_q.exp(), tail_samples, replacement=True)], dim=-1
        )
        log_w = log_focus.gather(-1, index)
        correction = log_q.gather(-1, index[:, samples - tail_samples :]) + math.log(tail_samples)
        return index, torch.cat(
            [log_w[:, : samples - tail_samples], log_w[:, samples - tail_samples :] - correction],
            dim=-1,
        )
