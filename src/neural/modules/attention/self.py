"""Scaled dot-product attention (Vaswani et al., 2017): everybody looks at everybody that the mask allows."""

from __future__ import annotations

from dataclasses import replace
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
        self, q: Float[Tensor, "B H Q D"], k: Float[Tensor, "B H K D"], mask: Mask, extra: Tensor | None = None
    ) -> Float[Tensor, "B H Q K"]:
        """softmax(q·kᵀ / √D)."""
        return softmax(scores(q, k, mask), mask.kept(q.shape[-2], k.shape[-2], q.device))

    def mix(
        self, q: Float[Tensor, "B H Q D"], k: Float[Tensor, "B H K D"], v: Float[Tensor, "B H K V"], mask: Mask,
        dropout: float = 0.0, extra: Tensor | None = None,
    ) -> Float[Tensor, "B H Q V"]:  # fmt: skip
        """torch's fused kernel, which never holds the Q×K matrix."""
        return fused(q, k, v, mask, dropout)

    def as_softmax(
        self, q: Float[Tensor, "B H Q D"], k: Float[Tensor, "B H K D"], mask: Mask, extra: Tensor | None = None
    ) -> Mask:
        """It is one."""
        return mask

    def cost(self, heads: int, queries: int, keys: int, width: int) -> Cost:
        """Two products of Q×K×D per head; kept are the result and one number per row."""
        return Cost(multiply_adds=2 * heads * queries * keys * width, activations=heads * queries * (width + 1))


def scores(q: Float[Tensor, "B H Q D"], k: Float[Tensor, "B H K D"], mask: Mask) -> Float[Tensor, "B H Q K"]:
    """q·kᵀ / √D and what the mask adds; masked pairs included."""
    found = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
    added = mask.biases()
    return found if added is None else found + added


def softmax(
    scores: Float[Tensor, "B H Q K"], kept: Float[Tensor, "#B #H Q K"] | None
) -> Float[Tensor, "B H Q K"]:
    """Over the visible keys; a row with nothing to look at is all zeros, never NaN, forward or backward."""
    if kept is None:
        return scores.softmax(dim=-1)
    lowest = torch.finfo(scores.dtype).min
    return scores.masked_fill(~kept, lowest).softmax(dim=-1).masked_fill(~kept, 0)


def fused(
    q: Float[Tensor, "B H Q D"], k: Float[Tensor, "B H K D"], v: Float[Tensor, "B H K V"], mask: Mask, dropout: float,
    scale: float | None = None,
) -> Float[Tensor, "B H Q V"]:  # fmt: skip
    """torch's fused attention under any mask, with the right answer for empty rows.

    A bias per key that learns is folded in as one more column of q and k: given as a mask it would need a gradient,
    and a mask with a gradient leaves the fused path (twice the time, and the whole Q×K matrix).
    """
    attend = functional.scaled_dot_product_attention
    queries, keys = q.shape[-2], k.shape[-2]
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    bias, by_key = mask.bias, mask.key_bias
    # with fewer queries than keys, the kernel's flag would put the first query at the first key
    flag = mask.causal and queries == keys and mask.reach is None
    alone = mask.keys is None and mask.segments is None and mask.pairs is None and bias is None
    if by_key is not None and ((torch.is_grad_enabled() and by_key.requires_grad) or (flag and alone)):
        by_key = by_key.expand(q.shape[0], q.shape[1], keys).to(q.dtype)
        q = torch.cat((q, q.new_ones(*q.shape[:-1], 1)), dim=-1)
        k = torch.cat((k, by_key.unsqueeze(-1) / scale), dim=-1)
        # the fused path wants q, k and v of one width: a column of zeros in v, cut off again
        folded = replace(mask, key_bias=None)
        return fused(q, k, functional.pad(v, (0, 1)), folded, dropout, scale)[..., : v.shape[-1]]
    if by_key is not None:
        bias = by_key.unsqueeze(-2) if bias is None else bias + by_key.unsqueeze(-2)
    if alone and bias is None and (flag or not mask.causal) and mask.reach is None:
        return attend(q, k, v, is_causal=flag, dropout_p=dropout, scale=scale)
    kept = mask.kept(queries, keys, q.device)
    if kept is None:
        assert bias is not None
        return attend(q, k, v, attn_mask=bias.to(q.dtype), dropout_p=dropout, scale=scale)
    seen = kept.any(dim=-1, keepdim=True)
    allowed = kept | ~seen   # an empty row looks at everything, and its result is thrown away
    rule = allowed if bias is None else bias.to(q.dtype).masked_fill(~allowed, float("-inf"))
    return attend(q, k, v, attn_mask=rule, dropout_p=dropout, scale=scale).masked_fill(~seen, 0)
