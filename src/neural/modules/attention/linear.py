"""Linear attention (Katharopoulos et al., 2020): weights are products of positive features, and sums can be swapped.

With φ(x) = elu(x) + 1 the weight of key j for query i is φ(q_i)·φ(k_j) over the sum of the visible keys. Then
Σ_j (φ(q_i)·φ(k_j)) v_j = φ(q_i)·(Σ_j φ(k_j) v_jᵀ): the sum in brackets is the same for all queries, and nothing grows
with the square of the length. A bias b on a score multiplies the weight by exp(b), as it does in a softmax.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from neural.language.shapes import Cost
from neural.modules.late import functional, torch
from neural.modules.mask import Mask, as_bool
from neural.modules.mechanism import Mechanism
from neural.modules.rowwise import by_rows, filled

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

BLOCK = 64
"""Queries that see each other pair by pair where nobody looks ahead; everything before them is one running sum."""


class Linear(Mechanism):
    """Weights are φ(q)·φ(k) over their sum, where φ(x) = elu(x) + 1: time and memory grow with the length alone.

    Dropout drops whole keys of a head: dropped weight by weight, they would have to be made one by one. A query whose
    features miss those of all its keys, to the last digit, sees nothing.
    """

    def weights(
        self, q: Float[Tensor, "B H Q D"], k: Float[Tensor, "B H K D"], mask: Mask, extra: Tensor | None = None
    ) -> Float[Tensor, "B H Q K"]:
        """φ(q)·φ(k)·exp(bias), and every row over its sum."""
        kept, added = mask.kept(q.shape[-2], k.shape[-2], q.device), mask.biases()
        found = features(q) @ features(k).transpose(-1, -2)
        if added is not None:
            added = filled(added.to(found.dtype).expand_as(found), kept)
            found = found * (added - added.amax(dim=-1, keepdim=True).detach()).exp()   # the largest becomes 1
        if kept is not None:
            found = found.masked_fill(~kept, 0)
        return shares(found, found.sum(dim=-1, keepdim=True)).to(q.dtype)

    def mix(
        self, q: Float[Tensor, "B H Q D"], k: Float[Tensor, "B H K D"], v: Float[Tensor, "B H K V"], mask: Mask,
        dropout: float = 0.0, extra: Tensor | None = None,
    ) -> Float[Tensor, "B H Q V"]:  # fmt: skip
        """Sums over the keys, running ones where nobody looks ahead: O(n). Pair by pair under other rules."""
        if dropout:
            v = v * functional.dropout(v.new_ones(*v.shape[:-1], 1), dropout)
        by_pair = not all(one is None for one in (mask.reach, mask.segments, mask.pairs, mask.bias))
        # a key far ahead may have a bias so large that, in one sum with it, all before it would vanish
        if by_pair or (mask.causal and mask.key_bias is not None):
            return by_rows(self, q, k, v, mask, 0.0, extra)
        real = None if mask.keys is None else as_bool(mask.keys)[:, None, :]
        q, k = features(q), features(k)
        if mask.key_bias is not None:
            by_key = filled(mask.key_bias.to(k.dtype).expand(k.shape[:-1]), real)
            k = k * (by_key - by_key.amax(dim=-1, keepdim=True).detach()).exp().unsqueeze(-1)
        if real is not None:
            k = k.masked_fill(~real.unsqueeze(-1), 0)
        mixed, total = (running_sums if mask.causal else sums)(q, k, v.to(k.dtype))
        return shares(mixed, total).to(v.dtype)

    def cost(self, heads: int, queries: int, keys: int, width: int) -> Cost:
        """Keys with values, queries with their sums; kept are the features too. More than twice that when causal."""
        return Cost(
            multiply_adds=heads * width * (keys * width + queries * width + queries),
            activations=heads * (width * (3 * queries + keys + width + 1) + queries),
        )


def features(x: Float[Tensor, "B H T D"]) -> Float[Tensor, "B H T D"]:
    """φ(x) = elu(x) + 1, all positive; in 32 bits at least, for the sums."""
    return functional.elu(x.to(torch.promote_types(x.dtype, torch.float32))) + 1


def shares(parts: Float[Tensor, "B H Q N"], total: Float[Tensor, "B H Q 1"]) -> Float[Tensor, "B H Q N"]:
    """Parts over their total; 0 where there is next to nothing to share, so that no gradient can overflow."""
    enough = total > torch.finfo(total.dtype).tiny ** 0.5
    return (parts / total.where(enough, 1)).where(enough, 0)


def sums(
    q: Float[Tensor, "B H Q D"], k: Float[Tensor, "B H K D"], v: Float[Tensor, "B H K V"]
) -> tuple[Float[Tensor, "B H Q V"], Float[Tensor, "B H Q 1"]]:
    """Σ_j (q·k_j) v_j and Σ_j q·k_j, over all keys."""
    return q @ (k.transpose(-1, -2) @ v), q @ k.sum(dim=-2).unsqueeze(-1)


def running_sums(
    q: Float[Tensor, "B H Q D"], k: Float[Tensor, "B H K D"], v: Float[Tensor, "B H K V"]
) -> tuple[Float[Tensor, "B H Q V"], Float[Tensor, "B H Q 1"]]:
    """The same over the keys up to each query: pair by pair inside a block, by its sum for all blocks before it."""
    early = max(0, q.shape[-2] - k.shape[-2])   # queries before the first key: they see nothing
    q = q[..., early:, :]
    time, before = q.shape[-2], k.shape[-2] - q.shape[-2]
    first = k[..., :before, :].transpose(-1, -2) @ v[..., :before, :], k[..., :before, :].sum(dim=-2)
    q, k, v = (in_blocks(one) for one in (q, k[..., before:, :], v[..., before:, :]))
    each = k.transpose(-1, -2) @ v, k.sum(dim=-2)
    past, mass = (
        torch.cat((start.unsqueeze(2), block[:, :, :-1]), dim=2).cumsum(dim=2)
        for start, block in zip(first, each, strict=True)
    )
    inside = (q @ k.transpose(-1, -2)).tril()
    mixed = inside @ v + q @ past
    total = inside.sum(dim=-1, keepdim=True) + q @ mass.unsqueeze(-1)
    both = (one.flatten(2, 3)[..., :time, :] for one in (mixed, total))
    mixed, total = (functional.pad(one, (0, 0, early, 0)) for one in both)
    return mixed, total


def in_blocks(x: Float[Tensor, "B H T D"]) -> Float[Tensor, "B H N T D"]:
    """Cut along time, the last block filled up with zeros."""
    return functional.pad(x, (0, 0, 0, -x.shape[-2] % BLOCK)).unflatten(-2, (-1, BLOCK))
