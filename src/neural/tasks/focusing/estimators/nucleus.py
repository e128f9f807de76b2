"""As many segments as it takes to hold most of the focus, and one drawn from the rest: all at first, few in the end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neural.language.declaration import number
from neural.modules.late import functional, torch
from neural.tasks.focusing.estimator import UNREAD, Estimator
from neural.tasks.focusing.segments import NOWHERE

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from torch import Tensor


class Nucleus(Estimator):
    """The fewest segments that hold a share of the focus are summed exactly; one draw stands for the others."""

    mass: float = number("Share of the focus that is read exactly.", default=0.95, above=0, below=1)

    def choose(
        self, log_focus: Float[Tensor, "B m"], samples: int
    ) -> tuple[Int[Tensor, "B K"] | None, Float[Tensor, "B K"]]:
        """`samples` is the most that is read of an example; a sure focus needs less."""
        known, m = log_focus.detach(), log_focus.shape[-1]
        most = m if samples >= m else samples - 1   # the last one is the draw
        best = known.topk(most, dim=-1)
        before = best.values.exp().cumsum(dim=-1) - best.values.exp()
        inside = (before < self.mass) & (best.values > NOWHERE / 2)
        width = int(inside.sum(dim=-1).max())
        index = best.indices.masked_fill(~inside, UNREAD)[:, :width]
        log_w = log_focus.gather(-1, best.indices[:, :width]).masked_fill(~inside[:, :width], NOWHERE)
        # the rest, where there is any
        held = torch.zeros_like(known, dtype=torch.bool).scatter(-1, best.indices, inside)
        rest = known.masked_fill(held, NOWHERE)
        left = (rest > NOWHERE / 2).any(dim=-1, keepdim=True)
        log_q = functional.log_softmax(rest, dim=-1)
        draw = drawn(log_q.exp())
        weight = log_focus.gather(-1, draw) - log_q.gather(-1, draw)
        index = torch.cat([index, draw.masked_fill(~left, UNREAD)], dim=-1)
        return index, torch.cat([log_w, weight.masked_fill(~left, NOWHERE)], dim=-1)


def drawn(weights: Float[Tensor, "B m"]) -> Int[Tensor, "B 1"]:
    """One of each row, by its weights: one random number per row, where `multinomial` takes one per weight."""
    up_to = weights.cumsum(dim=-1)
    below = torch.rand_like(up_to[:, :1]) * (1 - 1e-6) * up_to[:, -1:]   # never the whole sum: what follows it weighs 0
    return torch.searchsorted(up_to, below, right=True)
