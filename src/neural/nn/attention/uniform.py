"""Uniform attention, a baseline: the mean over all visible keys.

How much a model with learned attention is better than with this baseline is the value of attention
(Wiegreffe and Pinter, 2019). Queries, keys and the biases of the mask have no effect; padding and
other rules of the mask do.

A mechanism (mechanism.py): `weights` defines it, `attend` computes `weights @ v` fast, and `cost`
counts its multiply-adds and the values saved for the backward pass. `extra` is unused: it is for
mechanisms with learned parameters.

A `Mask` (mask.py) combines causality, padding (`keys`), a largest distance (`reach`), packed
documents (`segments`), any other rule (`pairs`) and biases of the scores.

Axes: B batch, H heads, Q queries, K keys, D head width, V width of values.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from neural.language.shapes import Cost
from neural.nn.attention.self import fused_attention, masked_softmax
from neural.nn.lazy_torch import functional, torch
from neural.nn.mask import Mask, as_bool
from neural.nn.mechanism import Mechanism

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor


class Uniform(Mechanism):
    """Equal weights for all visible keys."""

    saved_inputs: ClassVar[str] = ""  # neither q, k nor v is saved for the backward pass

    def weights(
        self,
        q: Float[Tensor, "B H Q D"],
        k: Float[Tensor, "B H K D"],
        mask: Mask,
        extra: Tensor | None = None,
    ) -> Float[Tensor, "B H Q K"]:
        """1 / number of visible keys."""
        queries, keys = q.shape[-2], k.shape[-2]
        return masked_softmax(
            q.new_zeros(*q.shape[:-1], keys), mask.to_keep_mask(queries, keys, q.device)
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
        """Means of v, which are cumulative if causal.

        With dropout or other rules of the mask: the fused kernel with scores of zero.
        """
        if dropout or not all(rule is None for rule in (mask.reach, mask.segments, mask.pairs)):
            unbiased = replace(mask, bias=None, key_bias=None)
            output = fused_attention(
                q=v.new_zeros(*q.shape[:-1], v.shape[-1]),
                k=torch.zeros_like(v),
                v=v,
                mask=unbiased,
                dropout=dropout,
            )
        else:
            output = masked_mean(v, mask, q.shape[-2])
        # Empty sums give unused tensors a gradient of zero instead of none: distributed training
        # waits for the gradient of every parameter.
        unused = (q, k, mask.bias, mask.key_bias)
        return output + sum(tensor[..., :0].sum() for tensor in unused if tensor is not None)

    def cost(self, heads: int, queries: int, keys: int, width: int) -> Cost:
        """No multiplications; saves the output."""
        return Cost(activations=heads * queries * width)


def masked_mean(v: Float[Tensor, "B H K V"], mask: Mask, queries: int) -> Float[Tensor, "B H Q V"]:
    """Mean value of the real keys; with a causal mask, of those up to each query."""
    keys, sum_dtype = v.shape[-2], torch.promote_types(v.dtype, torch.float32)
    key_mask = (
        torch.ones(1, keys, dtype=torch.bool, device=v.device)
        if mask.keys is None
        else as_bool(mask.keys)
    )
    key_mask = key_mask[:, None, :, None]
    visible = v if mask.keys is None else v.masked_fill(~key_mask, 0)
    if not mask.causal:
        count = key_mask.sum(dim=-2, keepdim=True).clamp(min=1)
        mean = visible.sum(dim=-2, keepdim=True, dtype=sum_dtype) / count
        return mean.to(v.dtype).expand(-1, -1, queries, -1)
    running = visible.cumsum(dim=-2, dtype=sum_dtype) / key_mask.cumsum(dim=-2).clamp(min=1)
    # The last query is at the last key; queries before the first key see no key.
    return functional.pad(
        running.to(v.dtype)[..., max(0, keys - queries) :, :], (0, 0, max(0, queries - keys), 0)
    )
