"""Attention inside a window: neighbours only (Luong et al., 2015, section 3.2, without the learned centre)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from neural.language.declaration import count
from neural.language.shapes import Cost
from neural.modules.attention.self import Self, fused
from neural.modules.compiled import compiled
from neural.modules.late import functional, torch
from neural.modules.mask import Mask
from neural.modules.mechanism import Mechanism

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

BLOCK = 32
"""Queries that share one small attention in plain torch; measured best for windows of 7 to 64."""


class Localized(Mechanism):
    """Every query looks at the keys at most `window // 2` positions away."""

    self_attention_only: ClassVar[bool] = True

    window: int = count(
        "Width of the window, the query's own position in its middle; a causal block sees its earlier half.",
        default=7, odd=True, shown=True,
    )

    def weights(
        self, q: Float[Tensor, "B H Q D"], k: Float[Tensor, "B H K D"], mask: Mask, extra: Tensor | None = None
    ) -> Float[Tensor, "B H Q K"]:
        """The softmax over the window alone."""
        return Self().weights(q, k, self.as_softmax(q, k, mask))

    @compiled("neural.modules.kernels.localized")
    def mix(
        self, q: Float[Tensor, "B H Q D"], k: Float[Tensor, "B H K D"], v: Float[Tensor, "B H K V"], mask: Mask,
        dropout: float = 0.0, extra: Tensor | None = None,
    ) -> Float[Tensor, "B H Q V"]:  # fmt: skip
        """Blocks of queries, each with the few keys around it: O(n·w)."""
        near = self.as_softmax(q, k, mask)
        others = (near.segments, near.pairs, near.bias, near.key_bias)
        wide = q.shape[-2] <= 2 * max(BLOCK, near.reach or 0)   # blocks would hold more keys than there are
        if any(one is not None for one in others) or q.shape[-2] != k.shape[-2] or wide:
            return fused(q, k, v, near, dropout)
        return in_blocks(q, k, v, near, dropout)

    def as_softmax(
        self, q: Float[Tensor, "B H Q D"], k: Float[Tensor, "B H K D"], mask: Mask, extra: Tensor | None = None
    ) -> Mask:
        """No further than the window."""
        return mask.near(self.window // 2)

    def cost(self, heads: int, queries: int, keys: int, width: int) -> Cost:
        """Two products with the window's keys per query; kept are the result, also as the layer lays it out, and one
        number per row.
        """
        window = min(self.window, keys)
        return Cost(multiply_adds=2 * heads * queries * window * width, activations=heads * queries * (2 * width + 1))

    @classmethod
    def tiny(cls) -> Mechanism:
        """One neighbour on either side."""
        return cls(window=3)


def in_blocks(
    q: Float[Tensor, "B H T D"], k: Float[Tensor, "B H T D"], v: Float[Tensor, "B H T V"], mask: Mask, dropout: float
) -> Float[Tensor, "B H T V"]:
    """Cut the queries into blocks and give each block the keys that any of its queries may see."""
    assert mask.reach is not None
    time, reach = q.shape[-2], mask.reach
    size = max(BLOCK, reach)
    blocks = -(-time // size)
    rest = blocks * size - time
    q = functional.pad(q, (0, 0, 0, rest)).unflatten(-2, (blocks, size))
    k, v = (functional.pad(one, (0, 0, reach, reach + rest)) for one in (k, v))
    k, v = (one.unfold(-2, size + 2 * reach, size).transpose(-1, -2) for one in (k, v))
    # where a query of the block and a key of its surroundings stand, counted from the block's first query
    ahead = torch.arange(-reach, size + reach, device=q.device) - torch.arange(size, device=q.device).unsqueeze(-1)
    kept = (ahead <= 0) & (ahead >= -reach) if mask.causal else ahead.abs() <= reach
    real = mask.keys if mask.keys is not None else torch.ones(1, time, dtype=torch.bool, device=q.device)
    around = functional.pad(real != 0, (reach, reach + rest)).unfold(-1, size + 2 * reach, size)
    kept = kept & around[:, None, :, None, :]
    seen = kept.any(dim=-1, keepdim=True)
    out = functional.scaled_dot_product_attention(q, k, v, attn_mask=kept | ~seen, dropout_p=dropout)
    return out.masked_fill(~seen, 0).flatten(2, 3)[..., :time, :]
