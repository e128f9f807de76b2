"""A learned bias per distance, in buckets (T5: Raffel et al., 2020)."""

from __future__ import annotations

from math import log
from typing import TYPE_CHECKING, ClassVar

from neural.language.declaration import count
from neural.language.shapes import Shape
from neural.modules.late import nn, torch
from neural.modules.position import InsideAttention, Position

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from torch import Tensor


class Relative(Position):
    """Adds a learned number to every score, by head and by distance; far distances share buckets."""

    adds: ClassVar[bool] = False

    buckets: int = count("Different distances; half of them single steps, the rest growing.", default=32, at_least=4)
    max_distance: int = count("From here on, all distances are one.", default=128, at_least=4)

    def parameters(self, x: Shape, heads: int | None = None) -> int:
        """One number per bucket and head."""
        return self.buckets * (heads or 1)

    def build(self, x: Shape, heads: int = 1, causal: bool = False) -> RelativePositions:
        """A small table."""
        return RelativePositions(heads, self.buckets, self.max_distance, causal)

    @classmethod
    def tiny(cls) -> Position:
        """Few enough buckets that some are shared."""
        return cls(buckets=8, max_distance=6)


class RelativePositions(InsideAttention):
    """A table of buckets × heads."""

    def __init__(self, heads: int, buckets: int, max_distance: int, causal: bool) -> None:
        super().__init__()
        self.table = nn.Embedding(buckets, heads)
        nn.init.normal_(self.table.weight, std=0.02)
        self.buckets, self.max_distance, self.causal = buckets, max_distance, causal

    def bias(self, q: Float[Tensor, "B H Q D"], keys: int) -> Float[Tensor, "H Q K"]:
        """The table's entry for each distance; the last query stands at the last key."""
        queries = torch.arange(keys - q.shape[-2], keys, device=q.device).unsqueeze(-1)
        behind = queries - torch.arange(keys, device=q.device)
        return self.table(self.bucket(behind)).permute(2, 0, 1)

    def bucket(self, behind: Int[Tensor, "Q K"]) -> Int[Tensor, "Q K"]:
        """Which bucket a distance falls in: single steps first, then logarithmic; ahead has the upper half."""
        buckets = self.buckets if self.causal else self.buckets // 2
        ahead = torch.zeros_like(behind) if self.causal else (behind < 0) * buckets
        distance = behind.clamp(min=0) if self.causal else behind.abs()
        single = max(1, buckets // 2)
        spread = log(max(self.max_distance / single, 2.0))
        growth = (distance.clamp(min=1) / single).log() / spread * (buckets - single)
        far = (single + growth).long().clamp(max=buckets - 1)
        return ahead + torch.where(distance < single, distance, far)
