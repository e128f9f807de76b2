"""Attention with linear biases (Press et al., 2021): the further away, the lower the score."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from neural.language.shapes import Shape
from neural.modules.late import torch
from neural.modules.position import InsideAttention, Position

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor


class Alibi(Position):
    """Takes slope × distance off every score, with a slope of its own for each head; nothing is learned."""

    adds: ClassVar[bool] = False

    def build(self, x: Shape, heads: int = 1, causal: bool = False) -> AlibiPositions:
        """One slope per head."""
        return AlibiPositions(heads, causal)


class AlibiPositions(InsideAttention):
    """Slopes 2^(-8/H), 2^(-16/H), … down to 2^-8."""

    def __init__(self, heads: int, causal: bool) -> None:
        super().__init__()
        self.heads, self.causal = heads, causal

    def slopes(self, q: Float[Tensor, "B H Q D"]) -> Float[Tensor, " H"]:
        """One per head."""
        steps = torch.arange(1, self.heads + 1, device=q.device, dtype=torch.float32)
        return torch.exp2(-8 * steps / self.heads)

    def bias(self, q: Float[Tensor, "B H Q D"], keys: int) -> Float[Tensor, "H Q K"] | None:
        """Minus slope × |i − j|; the last query stands at the last key."""
        if self.causal and _many_digits(q):
            return None
        queries = torch.arange(keys - q.shape[-2], keys, device=q.device).unsqueeze(-1)
        distance = (torch.arange(keys, device=q.device) - queries).abs()
        return (-self.slopes(q)[:, None, None] * distance).to(q.dtype)

    def key_bias(self, q: Float[Tensor, "B H Q D"], keys: int) -> Float[Tensor, "1 H K"] | None:
        """Where nobody looks ahead, slope × j says the same: the rest is alike for all keys of a row and cancels.

        Not in 16 bits: far from the last key, neighbours would get the same number.
        """
        if not (self.causal and _many_digits(q)):
            return None
        back = torch.arange(1 - keys, 1, device=q.device, dtype=torch.float32)   # 0 at the last key: small numbers
        return (self.slopes(q)[:, None] * back)[None].to(q.dtype)


def _many_digits(x: Tensor) -> bool:
    return torch.finfo(x.dtype).bits >= 32
