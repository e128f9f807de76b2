"""Drawing without replacement by the Gumbel-top-k trick (Kool et al., 2019; Duffield et al., 2007)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neural.modules.late import torch
from neural.tasks.focusing.estimator import Estimator

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from torch import Tensor


class Gumbel(Estimator):
    """Different segments, the likelier the more focus they have; each weighted by its chance to be among them."""

    def choose(
        self, log_focus: Float[Tensor, "B m"], samples: int
    ) -> tuple[Int[Tensor, "B K"] | None, Float[Tensor, "B K"]]:
        """A segment counts a / P(its key is above the first one left out)."""
        if samples >= log_focus.shape[-1]:
            return None, log_focus
        known = log_focus.detach()
        keys = known - torch.empty_like(known).exponential_().log()
        best = keys.topk(samples + 1, dim=-1)
        index, threshold = best.indices[:, :-1], best.values[:, -1:]
        chance = -torch.expm1(-torch.exp(known.gather(-1, index) - threshold))
        return index, log_focus.gather(-1, index) - chance.clamp(min=torch.finfo(chance.dtype).tiny).log()
