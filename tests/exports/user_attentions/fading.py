"""Weights that fall with the distance; for self-attention only."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor

from neural.language.declaration import int_field
from neural.language.shapes import Cost
from neural.nn.attention.self import Self, dot_product_scores
from neural.nn.mask import Mask
from neural.nn.mechanism import Mechanism

from .helpers import dot_product_scores as product


def sum(x: Tensor) -> Tensor:  # noqa: A001  # the collision is intended
    """Shadows a builtin that our code uses."""
    return x.sum(dim=-1, keepdim=True)


def distances(queries: int, keys: int, device: torch.device) -> Tensor:
    """Distance of every query to every key; the last query is at the last key."""
    query_positions = torch.arange(keys - queries, keys, device=device).unsqueeze(-1)
    return (torch.arange(keys, device=device) - query_positions).abs()


class Fading(Mechanism):
    """Scores that decay with the distance, normalized per row."""

    self_attention_only: ClassVar[bool] = True

    half: int = int_field("Distance at which a weight is halved.", default=2)

    def weights(self, q: Tensor, k: Tensor, mask: Mask, extra: Tensor | None = None) -> Tensor:
        """exp(tanh(scores)) · 2^(−distance / half) over the visible keys."""
        values = (dot_product_scores(q, k, mask) + product(q, k)).tanh().exp()
        values = values * 2 ** (-distances(q.shape[-2], k.shape[-2], q.device) / self.half)
        keep = mask.to_keep_mask(q.shape[-2], k.shape[-2], q.device)
        values = values if keep is None else values * keep
        return values / sum(values).clamp(min=1e-9)

    def attend(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        mask: Mask,
        dropout: float = 0.0,
        extra: Tensor | None = None,
    ) -> Tensor:
        """By the definition."""
        return torch.nn.functional.dropout(self.weights(q, k, mask, extra), dropout) @ v

    def cost(self, heads: int, queries: int, keys: int, width: int) -> Cost:
        """The cost of full attention."""
        return Self().cost(heads, queries, keys, width)
