"""Causal attention (Vaswani et al., 2017; GPT): a query sees no later keys.

Decoder blocks are causal with any mechanism; this one makes other layers causal, too.

A mechanism (mechanism.py): `weights` defines it, `attend` computes `weights @ v` fast, and `cost`
counts its multiply-adds and the values saved for the backward pass. `Self` is plain softmax
attention (self.py). `extra` is unused: it is for mechanisms with learned parameters.

Axes: B batch, H heads, Q queries, K keys, D head width, V width of values.
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

    self_attention_only: ClassVar[bool] = True  # not for cross-attention: it compares positions

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
        """The cost of full attention, although the kernel skips up to half of it."""
        return Self().cost(heads, queries, keys, width)
