"""Uniform attention, the baseline to beat: every visible key counts alike, so mixing is a mean.

What a network with learned weights gains over this one is what its attention is worth (Wiegreffe and Pinter, 2019).
Queries, keys and biases on the scores change nothing: the mask alone decides.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from neural.language.shapes import Cost
from neural.modules.attention.self import fused, softmax
from neural.modules.late import functional, torch
from neural.modules.mask import Mask, as_bool
from neural.modules.mechanism import Mechanism

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor


class Uniform(Mechanism):
    """Every visible key gets the same weight."""

    saved_inputs: ClassVar[str] = ""

    def weights(
        self, q: Float[Tensor, "B H Q D"], k: Float[Tensor, "B H K D"], mask: Mask, extra: Tensor | None = None
    ) -> Float[Tensor, "B H Q K"]:
        """One over the number of visible keys."""
        queries, keys = q.shape[-2], k.shape[-2]
        return softmax(q.new_zeros(*q.shape[:-1], keys), mask.kept(queries, keys, q.device))

    def mix(
        self, q: Float[Tensor, "B H Q D"], k: Float[Tensor, "B H K D"], v: Float[Tensor, "B H K V"], mask: Mask,
        dropout: float = 0.0, extra: Tensor | None = None,
    ) -> Float[Tensor, "B H Q V"]:  # fmt: skip
        """Means, running ones where nobody looks ahead; the fused kernel on zeros under other rules."""
        if dropout or not all(one is None for one in (mask.reach, mask.segments, mask.pairs)):
            alike = replace(mask, bias=None, key_bias=None)
            mixed = fused(v.new_zeros(*q.shape[:-1], v.shape[-1]), torch.zeros_like(v), v, alike, dropout)
        else:
            mixed = means(v, mask, q.shape[-2])
        # sums of nothing: what is not used gets a gradient of zero, not none, as training on several machines wants it
        unused = (q, k, mask.bias, mask.key_bias)
        return mixed + sum(one[..., :0].sum() for one in unused if one is not None)

    def cost(self, heads: int, queries: int, keys: int, width: int) -> Cost:
        """Additions alone; kept is the result."""
        return Cost(activations=heads * queries * width)


def means(v: Float[Tensor, "B H K V"], mask: Mask, queries: int) -> Float[Tensor, "B H Q V"]:
    """Of the real keys, or of those up to each query."""
    keys, wide = v.shape[-2], torch.promote_types(v.dtype, torch.float32)
    real = torch.ones(1, keys, dtype=torch.bool, device=v.device) if mask.keys is None else as_bool(mask.keys)
    real = real[:, None, :, None]
    visible = v if mask.keys is None else v.masked_fill(~real, 0)
    if not mask.causal:
        mean = visible.sum(dim=-2, keepdim=True, dtype=wide) / real.sum(dim=-2, keepdim=True).clamp(min=1)
        return mean.to(v.dtype).expand(-1, -1, queries, -1)
    running = visible.cumsum(dim=-2, dtype=wide) / real.cumsum(dim=-2).clamp(min=1)
    # the last query stands at the last key; queries before the first key see nothing
    return functional.pad(running.to(v.dtype)[..., max(0, keys - queries) :, :], (0, 0, max(0, queries - keys), 0))
