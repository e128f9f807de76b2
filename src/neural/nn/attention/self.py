"""Scaled dot-product attention (Vaswani et al., 2017) over all keys that the mask allows.

A mechanism (mechanism.py): `weights` defines it, `attend` computes `weights @ v` fast, and `cost`
counts its multiply-adds and the values saved for the backward pass. `extra` is the output of a
mechanism's learned module; this mechanism has none.

A `Mask` (mask.py) combines causality, padding (`keys`), a largest distance (`reach`), packed
documents (`segments`), any other rule (`pairs`) and biases of the scores.

Axes: B batch, H heads, Q queries, K keys, D head width, V width of values.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from neural.language.shapes import Cost
from neural.nn.lazy_torch import functional, torch
from neural.nn.mask import Mask
from neural.nn.mechanism import Mechanism

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor


class Self(Mechanism):
    """Weights are the softmax of scaled dot products over all visible keys."""

    def weights(
        self,
        q: Float[Tensor, "B H Q D"],
        k: Float[Tensor, "B H K D"],
        mask: Mask,
        extra: Tensor | None = None,
    ) -> Float[Tensor, "B H Q K"]:
        """softmax(q·kᵀ / √D)."""
        return masked_softmax(
            dot_product_scores(q, k, mask), mask.to_keep_mask(q.shape[-2], k.shape[-2], q.device)
        )

    def attend(
        self,
        q: Float[Tensor, "B H Q D"],
        k: Float[Tensor, "B H K D"],
        v: Float[Tensor, "B H K V"],
        mask: Mask,
        dropout: float = 0.0,
        extra: Tensor | None = None,
    ) -> Float[Tensor, "B H Q V"]:
        """torch's fused kernel, which never allocates the Q×K matrix."""
        return fused_attention(q, k, v, mask, dropout)

    def softmax_mask(
        self,
        q: Float[Tensor, "B H Q D"],
        k: Float[Tensor, "B H K D"],
        mask: Mask,
        extra: Tensor | None = None,
    ) -> Mask:
        """The mask with which plain softmax attention has these weights: here, the same mask."""
        return mask

    def cost(self, heads: int, queries: int, keys: int, width: int) -> Cost:
        """Two products of Q·K·D multiply-adds per head.

        Saves the output and, for each query, the log-sum-exp of its scores.
        """
        return Cost(
            multiply_adds=2 * heads * queries * keys * width,
            activations=heads * queries * (width + 1),
        )


def dot_product_scores(
    q: Float[Tensor, "B H Q D"], k: Float[Tensor, "B H K D"], mask: Mask
) -> Float[Tensor, "B H Q K"]:
    """q·kᵀ / √D plus the biases of the mask, also for masked pairs."""
    scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
    bias = mask.combine_biases()
    return scores if bias is None else scores + bias


def masked_softmax(
    scores: Float[Tensor, "B H Q K"], keep_mask: Float[Tensor, "#B #H Q K"] | None
) -> Float[Tensor, "B H Q K"]:
    """Softmax over the keys where `keep_mask` is True; other weights are 0.

    The row of a query without visible keys is 0. It has no NaN, also not in the backward pass.
    """
    if keep_mask is None:
        return scores.softmax(dim=-1)
    lowest = torch.finfo(scores.dtype).min
    return scores.masked_fill(~keep_mask, lowest).softmax(dim=-1).masked_fill(~keep_mask, 0)


def fused_attention(
    q: Float[Tensor, "B H Q D"],
    k: Float[Tensor, "B H K D"],
    v: Float[Tensor, "B H K V"],
    mask: Mask,
    dropout: float,
    scale: float | None = None,
) -> Float[Tensor, "B H Q V"]:
    """torch's fused attention under any mask; the output of a query without visible keys is 0.

    `scale` multiplies q·kᵀ; by default 1 / √D.

    torch has no fused kernel for a mask that needs a gradient: it would take twice the time and
    allocate the Q×K matrix. So a key bias with a gradient becomes an additional column of q and k.
    """
    attend = functional.scaled_dot_product_attention
    queries, keys = q.shape[-2], k.shape[-2]
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    bias, key_bias = mask.bias, mask.key_bias
    # torch's `is_causal` aligns the first query with the first key, we the last with the last. They
    # agree for equally many. `reach` (the largest visible distance) has no flag in torch.
    is_causal = mask.causal and queries == keys and mask.reach is None
    no_tensors = mask.keys is None and mask.segments is None and mask.pairs is None and bias is None
    if key_bias is not None and (
        (torch.is_grad_enabled() and key_bias.requires_grad) or (is_causal and no_tensors)
    ):
        key_bias = key_bias.expand(q.shape[0], q.shape[1], keys).to(q.dtype)
        q = torch.cat((q, q.new_ones(*q.shape[:-1], 1)), dim=-1)
        k = torch.cat((k, key_bias.unsqueeze(-1) / scale), dim=-1)
        # The fused path needs q, k and v of one width: pad v with a column that is cut off again.
        unbiased = replace(mask, key_bias=None)
        return fused_attention(q, k, functional.pad(v, (0, 1)), unbiased, dropout, scale)[
            ..., : v.shape[-1]
        ]
    if key_bias is not None:
        bias = key_bias.unsqueeze(-2) if bias is None else bias + key_bias.unsqueeze(-2)
    if no_tensors and bias is None and (is_causal or not mask.causal) and mask.reach is None:
        return attend(q, k, v, is_causal=is_causal, dropout_p=dropout, scale=scale)
    keep = mask.to_keep_mask(queries, keys, q.device)
    if keep is None:
        assert bias is not None
        return attend(q, k, v, attn_mask=bias.to(q.dtype), dropout_p=dropout, scale=scale)
    has_keys = keep.any(dim=-1, keepdim=True)
    # A row without visible keys attends to all of them, which avoids NaN; its output becomes 0.
    allowed = keep | ~has_keys
    attn_mask = allowed if bias is None else bias.to(q.dtype).masked_fill(~allowed, float("-inf"))
    output = attend(q, k, v, attn_mask=attn_mask, dropout_p=dropout, scale=scale)
    return output.masked_fill(~has_keys, 0)
