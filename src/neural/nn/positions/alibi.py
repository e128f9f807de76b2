"""Attention with linear biases (ALiBi; Press et al., 2021): scores decrease with distance.

`Alibi` is the declaration in a program (position.py), `AlibiPositions` the torch module, which is
applied inside every attention. The last query has the position of the last key. Axes: B batch, H
heads, Q queries, K keys, D head width.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from neural.language.shapes import Shape
from neural.nn.lazy_torch import torch
from neural.nn.position import AttentionPositions, Position

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor


class Alibi(Position):
    """Subtracts slope × distance from every score, with one slope per head; no parameters."""

    is_additive: ClassVar[bool] = False  # adds to attention scores, not to the input

    def build(self, x: Shape, heads: int = 1, causal: bool = False) -> AlibiPositions:
        """One slope per head."""
        return AlibiPositions(heads, causal)


class AlibiPositions(AttentionPositions):
    """Slopes 2^(-8/H), 2^(-16/H), … down to 2^-8."""

    def __init__(self, heads: int, causal: bool) -> None:
        super().__init__()
        self.heads, self.causal = heads, causal

    def slopes(self, q: Float[Tensor, "B H Q D"]) -> Float[Tensor, " H"]:
        """One slope per head, on the device of `q`."""
        head_numbers = torch.arange(1, self.heads + 1, device=q.device, dtype=torch.float32)
        return torch.exp2(-8 * head_numbers / self.heads)

    def bias(self, q: Float[Tensor, "B H Q D"], keys: int) -> Float[Tensor, "H Q K"] | None:
        """−slope × |i − j| for query i and key j; None if `key_bias` replaces it."""
        if self.causal and _has_full_precision(q):
            return None
        queries = torch.arange(keys - q.shape[-2], keys, device=q.device).unsqueeze(-1)
        distance = (torch.arange(keys, device=q.device) - queries).abs()
        return (-self.slopes(q)[:, None, None] * distance).to(q.dtype)

    def key_bias(self, q: Float[Tensor, "B H Q D"], keys: int) -> Float[Tensor, "1 H K"] | None:
        """slope × j for key j in causal attention, instead of −slope × (i − j).

        The difference, slope × i, is the same for all keys of a query and cancels in the softmax.
        None in 16 bits: far from the last key, neighbouring keys would get equal values.
        """
        if not (self.causal and _has_full_precision(q)):
            return None
        # Counted from the last key, which keeps the values near it small.
        key_offsets = torch.arange(1 - keys, 1, device=q.device, dtype=torch.float32)
        return (self.slopes(q)[:, None] * key_offsets)[None].to(q.dtype)


def _has_full_precision(x: Tensor) -> bool:
    return torch.finfo(x.dtype).bits >= 32
