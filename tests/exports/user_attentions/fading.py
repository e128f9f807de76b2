"""Weights that fall with the distance alone; needs one sequence."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from neural.language.declaration import count
from neural.language.shapes import Cost
from neural.modules.attention.self import Self, scores
from neural.modules.mask import Mask
from neural.modules.mechanism import Mechanism

from .helpers import scores as product


def sum(x: Tensor) -> Tensor:  # noqa: A001  # the collision is meant
    """Called like a builtin that ours use."""
    return x.sum(dim=-1, keepdim=True)


def lost(queries: int, keys: int, device: torch.device) -> Tensor:
    """The distance between every query and every key; the last query stands at the last key."""
    at = torch.arange(keys - queries, keys, device=device).unsqueeze(-1)
    return (torch.arange(keys, device=device) - at).abs()


class Fading(Mechanism):
    """Plain scores less the distance, and every row over its sum."""

    self_attention_only: ClassVar[bool] = True

    half: int = count("Distance at which a weight is halved.", default=2)

    def weights(self, q: Tensor, k: Tensor, mask: Mask, extra: Tensor | None = None) -> Tensor:
        """exp(tanh(scores)) · 2^(−distance / half) over the visible keys."""
        mixed = (scores(q, k, mask) + product(q, k)).tanh().exp()
        mixed = mixed * 2 ** (-lost(q.shape[-2], k.shape[-2], q.device) / self.half)
        kept = mask.kept(q.shape[-2], k.shape[-2], q.device)
        mixed = mixed if kept is None else mixed * kept
        return mixed / sum(mixed).clamp(min=1e-9)

    def mix(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        mask: Mask,
        dropout: float = 0.0,
        extra: Tensor | None = None,
    ) -> Tensor:
        """As defined."""
        return torch.nn.functional.dropout(self.weights(q, k, mask, extra), dropout) @ v

    def cost(self, heads: int, queries: int, keys: int, width: int) -> Cost:
        """As of full attention."""
        return Self().cost(heads, queries, keys, width)
