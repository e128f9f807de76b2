"""The segments with the most focus, and a few drawn from the rest that stand for all of it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from neural.language.declaration import number
from neural.modules.late import functional, torch
from neural.tasks.focusing.estimator import Estimator
from neural.tasks.focusing.segments import NOWHERE

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from torch import Tensor


class Topk(Estimator):
    """The largest weights are summed exactly; the tail is sampled by its own focus and weighted back."""

    tail: float = number("Share of the samples that is drawn from the tail; at least one is.", default=0.25,
                         above=0, at_most=1)  # fmt: skip

    def choose(
        self, log_focus: Float[Tensor, "B m"], samples: int
    ) -> tuple[Int[Tensor, "B K"] | None, Float[Tensor, "B K"]]:
        """A drawn segment counts a / (S q): once for each time that it would have been missed."""
        if samples >= log_focus.shape[-1]:
            return None, log_focus
        drawn = min(samples, max(1, round(samples * self.tail)))
        known = log_focus.detach()
        best = known.topk(samples - drawn, dim=-1).indices
        log_q = functional.log_softmax(known.scatter(-1, best, NOWHERE), dim=-1)
        index = torch.cat([best, torch.multinomial(log_q.exp(), drawn, replacement=True)], dim=-1)
        log_w = log_focus.gather(-1, index)
        correction = log_q.gather(-1, index[:, samples - drawn :]) + math.log(drawn)
        return index, torch.cat([log_w[:, : samples - drawn], log_w[:, samples - drawn :] - correction], dim=-1)
