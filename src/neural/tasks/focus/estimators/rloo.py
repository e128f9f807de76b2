"""REINFORCE with a leave-one-out baseline (RLOO; Kool et al., 2019).

An estimator (estimator.py) selects the segments of an example that are classified in training, and
their weights in the loss. aₖ is the focus weight of sample k of K, fₖ its term of the loss.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from neural.nn.lazy_torch import torch
from neural.tasks.focus.estimator import Estimator

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from torch import Tensor


class Rloo(Estimator):
    """Samples with replacement and equal weights; each one's baseline is the mean of the others."""

    def choose(
        self, log_focus: Float[Tensor, "B m"], samples: int
    ) -> tuple[Int[Tensor, "B K"], Float[Tensor, "B K"]]:
        """Indices of K samples, with log weights of value log(1/K).

        The gradient of log weight k is ∇log aₖ − (mean of ∇log a over the other samples). With it,
        the gradient of the weighted sum is that of RLOO, (1/K) Σₖ (fₖ − mean of the other f)
        ∇log aₖ: the same sum in another order.
        """
        index = torch.multinomial(log_focus.detach().exp(), samples, replacement=True)
        log_a = log_focus.gather(-1, index)
        log_a = log_a - log_a.detach()  # value 0, gradient ∇log a
        baseline = (log_a.sum(dim=-1, keepdim=True) - log_a) / max(1, samples - 1)
        return index, log_a - baseline - math.log(samples)
