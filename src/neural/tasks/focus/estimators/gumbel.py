"""Sampling without replacement by Gumbel-top-k (Kool et al., 2019; Duffield et al., 2007).

An estimator (estimator.py) selects the segments of an example that are classified in training, and
their weights in the loss. a is the focus weight of a segment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from neural.nn.lazy_torch import torch
from neural.tasks.focus.estimator import Estimator

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from torch import Tensor


class Gumbel(Estimator):
    """Distinct segments sampled by their focus, weighted by inverse inclusion probability."""

    def choose(
        self, log_focus: Float[Tensor, "B m"], samples: int
    ) -> tuple[Int[Tensor, "B K"] | None, Float[Tensor, "B K"]]:
        """Indices and log weights of the segments with the largest keys log a + Gumbel noise.

        The weight is a / P(key above the largest key of the segments left out).
        """
        if samples >= log_focus.shape[-1]:
            return None, log_focus  # all segments
        log_a = log_focus.detach()
        keys = log_a - torch.empty_like(log_a).exponential_().log()
        top = keys.topk(samples + 1, dim=-1)
        index, threshold = top.indices[:, :-1], top.values[:, -1:]
        inclusion = -torch.expm1(-torch.exp(log_a.gather(-1, index) - threshold))
        return index, log_focus.gather(-1, index) - inclusion.clamp(
            min=torch.finfo(inclusion.dtype).tiny
        ).log()
