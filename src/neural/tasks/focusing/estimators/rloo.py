"""REINFORCE with a leave-one-out baseline (Kool et al., 2019): each draw is judged against the others."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from neural.modules.late import torch
from neural.tasks.focusing.estimator import Estimator

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from torch import Tensor


class Rloo(Estimator):
    """Drawn with replacement from the focus, all counting alike; the gradient goes by how much better than the rest."""

    def choose(
        self, log_focus: Float[Tensor, "B m"], samples: int
    ) -> tuple[Int[Tensor, "B K"], Float[Tensor, "B K"]]:
        """Weights of 1/K, whose gradient is ∇log aₖ less the mean of the other draws'.

        Σₖ (fₖ − mean of the other f) ∇log aₖ, sorted by fₖ, is exactly that: the baseline is in the weights.
        """
        index = torch.multinomial(log_focus.detach().exp(), samples, replacement=True)
        moved = log_focus.gather(-1, index)
        moved = moved - moved.detach()   # 0, with a gradient
        others = (moved.sum(dim=-1, keepdim=True) - moved) / max(1, samples - 1)
        return index, moved - others - math.log(samples)
