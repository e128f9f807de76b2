"""Importance sampling: segments are drawn by a mixture of the focus and chance, and weighted back."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from neural.language.declaration import number
from neural.modules.late import torch
from neural.tasks.focusing.estimator import Estimator

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from torch import Tensor


class Importance(Estimator):
    """Drawn with replacement from the focus, with some chance for every segment."""

    chance: float = number("Share of the draws that ignore the focus: finds what it overlooks.", default=0.1,
                           above=0, at_most=1)  # fmt: skip

    def choose(
        self, log_focus: Float[Tensor, "B m"], samples: int
    ) -> tuple[Int[Tensor, "B K"], Float[Tensor, "B K"]]:
        """A draw counts a / (K q)."""
        a = log_focus.detach().exp()
        real = (a > 0).to(a)   # padding is never drawn
        q = (1 - self.chance) * a + self.chance * real / real.sum(dim=-1, keepdim=True)
        index = torch.multinomial(q, samples, replacement=True)
        return index, log_focus.gather(-1, index) - q.gather(-1, index).log() - math.log(samples)
