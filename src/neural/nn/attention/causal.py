"""Causal attention (Vaswani et al., 2017; GPT), also in layers that are not causal.

A mechanism (mechanism.py): `weights` defines it, `attend` is the fast form of `weights @ v`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from neural.language.shapes import Cost
from neural.nn.attention.self import Self, fused_attention
from neural.nn.mask import Mask
from neural.nn.mechanism import Mechanism

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor


class Causal(Mechanism):
    """Scaled dot-product attention to the keys up to the position of the query."""

    self_attention_only: ClassVar[bool] = True  # depends on positions of one sequence

    def weights(
        self,
        q: Float[Tensor, "B H Q D"],
        k: Float[Tensor, "B H K D"],
        mask: Mask,
        extra: Tensor | None = None,
    ) -> Float[Tensor, "B H Q K"]:
        """The softmax over the keys up to the query."""
        return Self().weights(q, k, self.softmax_mask(q, k, mask))

    def attend(
        self,
        q: Float[Tensor, "B H Q D"],
        k: Float[Tensor, "B H K D"],
        v: Float[Tensor, "B H K V"],
        mask: Mask,
        dropout: float = 0.0,
        extra: Tensor | None = None,
    ) -> Float[Tensor, "B H Q V"]:
        """torch's fused kernel, which skips later keys."""
        return fused_attention(q, k, v, self.softmax_mask(q, k, mask), dropout)

    def softmax_mask(
        self,
        q: Float[Tensor, "B H Q D"],
        k: Float[Tensor, "B H K D"],
        mask: Mask,
        extra: Tensor | None = None,
    ) -> Mask:
        """The mask with `causal` set."""
        return replace(mask, causal=True)

    def cost(self, heads: int, queries: int, keys: int, width: int) -> Cost:
        """As full attention; the kernel skips up to half of it."""
        return Self().cost(heads, queries, keys, width)
