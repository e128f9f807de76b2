"""Scaled dot-product attention (Vaswani et al., 2017): everybody looks at everybody that the mask allows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neural.language.shapes import Cost
from neural.modules.late import functional, torch
from neural.modules.mask import Mask
from neural.modules.mechanism import Mechanism

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor


class Self(Mechanism):
    """Weights are the softmax of scaled dot products over all visible keys."""

    def weights(
        self, q: Float[Tensor, "B H Q D"], k: Float[Tensor, "B H K D"], mask: Mask
    ) -> Float[Tensor, "B H Q K"]:
        """softmax(q·kᵀ / √D)."""
        scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
        if mask.bias is not None:
            scores = scores + mask.bias
        kept = mask.kept(q.shape[-2], k.shape[-2], q.device)
        if kept is None:
            return scores.softmax(dim=-1)
        # a row with nothing to look at: the softmax of what it has, then zeros; never NaN, forward or backward
        lowest = torch.finfo(scores.dtype).min
        return scores.masked_fill(~kept, lowest).softmax(dim=-1).masked_fill(~kept, 0)

    def mix(
        self, q: Float[Tensor, "B H Q D"], k: Float[Tensor, "B H K D"], v: Float[Tensor, "B H K V"], mask: Mask,
        dropout: float = 0.0,
    ) -> Float[Tensor, "B H Q V"]:  # fmt: skip
        """torch's fused kernel, which never holds the Q×K matrix."""
        fused = functional.scaled_dot_product_attention
        queries, keys = q.shape[-2], k.shape[-2]
        if mask.empty:
            return fused(q, k, v, dropout_p=dropout)
        if mask.only_causal and queries == keys:   # with fewer queries the flag would align them to the first keys
            return fused(q, k, v, is_causal=True, dropout_p=dropout)
        kept = mask.kept(queries, keys, q.device)
        if kept is None:
            return fused(q, k, v, attn_mask=mask.bias, dropout_p=dropout)
        seen = kept.any(dim=-1, keepdim=True)
        allowed = kept | ~seen   # an empty row looks at everything, and its result is thrown away
        if mask.bias is not None:
            allowed = mask.bias.masked_fill(~allowed, float("-inf"))
        return fused(q, k, v, attn_mask=allowed, dropout_p=dropout).masked_fill(~seen, 0)

    def cost(self, heads: int, queries: int, keys: int, width: int) -> Cost:
        """Two products of Q×K×D per head; kept are the result and one number per row."""
        return Cost(multiply_adds=2 * heads * queries * keys * width, activations=heads * queries * (width + 1))
