"""Importance sampling of segments from a mixture of the focus and a uniform distribution.

An estimator (estimator.py) selects the segments of an example that are classified in training, and
their weights in the loss.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from neural.language.declaration import float_field
from neural.nn.lazy_torch import torch
from neural.tasks.focus.estimator import Estimator

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from torch import Tensor


class Importance(Estimator):
    """Segments sampled with replacement from the focus, mixed with a uniform distribution."""

    chance: float = float_field(
        "Share of uniform samples, which find segments that the focus misses.",
        default=0.1,
        above=0,
        at_most=1,
    )

    def choose(
        self, log_focus: Float[Tensor, "B m"], samples: int
    ) -> tuple[Int[Tensor, "B K"], Float[Tensor, "B K"]]:
        """Indices of K samples from the mixture q, with log of the weight a / (K q).

        a is the focus weight of the segment.
        """
        a = log_focus.detach().exp()
        is_real = (a > 0).to(a)  # padding is never sampled
        q = (1 - self.chance) * a + self.chance * is_real / is_real.sum(dim=-1, keepdim=True)
        index = torch.multinomial(q, samples, replacement=True)
        return index, log_focus.gather(-1, index) - q.gather(-1, index).log() - math.log(samples)
