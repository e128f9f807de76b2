"""Relative positions: a learned bias per distance bucket (T5; Raffel et al., 2020).

`Relative` is the declaration in a program (position.py), `RelativePositions` the torch module,
which is applied inside every attention. The last query has the position of the last key. Axes: B
batch, H heads, Q queries, K keys, D head width.
"""

from __future__ import annotations

from math import log
from typing import TYPE_CHECKING, ClassVar

from neural.language.declaration import int_field
from neural.language.shapes import Shape
from neural.nn.lazy_torch import nn, torch
from neural.nn.position import AttentionPositions, Position

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from torch import Tensor


class Relative(Position):
    """Adds a learned bias to every score, by head and distance; large distances share buckets."""

    is_additive: ClassVar[bool] = False  # adds to attention scores, not to the input

    buckets: int = int_field(
        "Number of distance buckets; half of them single distances, the rest logarithmic.",
        default=32,
        at_least=4,
    )
    max_distance: int = int_field(
        "Larger distances share the last bucket.", default=128, at_least=4
    )

    def count_parameters(self, x: Shape, heads: int | None = None) -> int:
        """One bias per bucket and head."""
        return self.buckets * (heads or 1)

    def build(self, x: Shape, heads: int = 1, causal: bool = False) -> RelativePositions:
        """A table of biases."""
        return RelativePositions(heads, self.buckets, self.max_distance, causal)

    @classmethod
    def example(cls) -> Position:
        """An instance for tests: so few buckets that distances share them."""
        return cls(buckets=8, max_distance=6)


class RelativePositions(AttentionPositions):
    """Learned biases (bucket, head), added to the attention scores by distance of query and key."""

    def __init__(self, heads: int, buckets: int, max_distance: int, causal: bool) -> None:
        super().__init__()
        self.table = nn.Embedding(buckets, heads)
        nn.init.normal_(self.table.weight, std=0.02)
        self.buckets, self.max_distance, self.causal = buckets, max_distance, causal

    def bias(self, q: Float[Tensor, "B H Q D"], keys: int) -> Float[Tensor, "H Q K"]:
        """The bias of each head for the distance of each query and key."""
        queries = torch.arange(keys - q.shape[-2], keys, device=q.device).unsqueeze(-1)
        distance_back = queries - torch.arange(keys, device=q.device)
        return self.table(self.assign_buckets(distance_back)).permute(2, 0, 1)

    def assign_buckets(self, distance_back: Int[Tensor, "Q K"]) -> Int[Tensor, "Q K"]:
        """Bucket of each distance (query minus key position).

        The first half of the buckets are single distances; the width of the others grows with the
        distance. If attention is not causal, keys after the query have buckets of their own: the
        upper half of the table.
        """
        buckets = self.buckets if self.causal else self.buckets // 2
        # First bucket of the direction of each key.
        first_bucket = (
            torch.zeros_like(distance_back) if self.causal else (distance_back < 0) * buckets
        )
        distance = distance_back.clamp(min=0) if self.causal else distance_back.abs()
        num_exact = max(1, buckets // 2)
        log_range = log(max(self.max_distance / num_exact, 2.0))
        growth = (distance.clamp(min=1) / num_exact).log() / log_range * (buckets - num_exact)
        logarithmic = (num_exact + growth).long().clamp(max=buckets - 1)
        return first_bucket + torch.where(distance < num_exact, distance, logarithmic)
