"""Hard attention (Xu et al., 2015): one key per query, learned by a straight-through gradient (Bengio et al., 2013)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from neural.language.declaration import flag, number
from neural.modules.attention.self import scores, softmax
from neural.modules.late import torch
from neural.modules.mask import Mask
from neural.modules.rowwise import RowWise, filled

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor


class Hard(RowWise):
    """Every query looks at the one key with the largest score; the gradient is that of the softmax.

    With `sampled` the key is drawn from the softmax while gradients are recorded (by Gumbel noise, Jang et al., 2017),
    and is the best one under `no_grad`: validation and prediction are repeatable.
    """

    straight_through: ClassVar[bool] = True

    sampled: bool = flag("Draw the key from the softmax while learning.", default=False)
    temperature: float = number(
        "Of the softmax that gives the gradient and is drawn from; below 1 it is sharper.", default=1.0, above=0
    )

    def weights(
        self, q: Float[Tensor, "B H Q D"], k: Float[Tensor, "B H K D"], mask: Mask, extra: Tensor | None = None
    ) -> Float[Tensor, "B H Q K"]:
        """1 for the best key, 0 for all others; the first of equals. Backwards, softmax(scores / temperature)."""
        found, kept = scores(q, k, mask) / self.temperature, mask.kept(q.shape[-2], k.shape[-2], q.device)
        soft, drawn = softmax(found, kept), self.sampled and torch.is_grad_enabled()
        with torch.no_grad():
            noise = -torch.empty_like(found).exponential_().log() if drawn else 0
            best = filled(found + noise, kept).argmax(dim=-1, keepdim=True)
            one = torch.zeros_like(soft).scatter(-1, best, 1.0)
            one = one if kept is None else one.masked_fill(~kept, 0)
        return one + (soft - soft.detach())

    @classmethod
    def tiny(cls) -> Hard:
        """A softer gradient than usual."""
        return cls(temperature=2.0)
