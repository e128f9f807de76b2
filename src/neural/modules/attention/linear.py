"""Linear attention (Katharopoulos et al., 2020): weights are products of positive features, and sums can be swapped.

With φ(x) = elu(x) + 1 the weight of key j for query i is φ(q_i)·φ(k_j) over the sum of the visible keys. Then
Σ_j (φ(q_i)·φ(k_j)) v_j = φ(q_i)·(Σ_j φ(k_j) v_jᵀ): the sum in brackets is the same for all queries, and nothing grows
with the square of the length. A bias b on a score multiplies the weight by exp(b), as it does in a softmax.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import repeat
from typing import TYPE_CHECKING

from neural.language.shapes import Cost
from neural.modules.late import functional, torch
from neural.modules.mask import Mask, as_bool
from neural.modules.mechanism import Mechanism
from neural.modules.rowwise import by_rows, filled

if TYPE_CHECKING:
    from jaxtyping import Bool, Float
    from torch import Tensor

    Sums = tuple[Float[Tensor, "B H D V"], Float[Tensor, "B H D"]]

PIECE = 2**20
"""Numbers of one piece of the queries or keys: 4 MB."""
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
        if by_pair or (mask.causal and mask.key_bias is not None) or k.shape[-2] == 0:
            return by_rows(self, q, k, v, mask, 0.0, extra)
        real = None if mask.keys is None else as_bool(mask.keys)[:, None, :, None]
        if mask.key_bias is not None:
            by_key = filled(mask.key_bias.to(k.dtype).expand(k.shape[:-1]), None if real is None else real.squeeze(-1))
            factor = (by_key - by_key.amax(dim=-1, keepdim=True).detach()).exp().unsqueeze(-1)
        else:
            factor = None
        return torch.cat([*through(q, k, v, factor, real, causal=mask.causal)], dim=-2).to(v.dtype)

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


def through(
    q: Float[Tensor, "B H Q D"], k: Float[Tensor, "B H K D"], v: Float[Tensor, "B H K V"],
    factor: Float[Tensor, "B H K 1"] | None, real: Bool[Tensor, "B 1 K"] | None, *, causal: bool,
) -> Iterator[Float[Tensor, "B H P V"]]:  # fmt: skip
    """What the queries find, piece by piece: what all of them see first, then, if nobody looks ahead, as it comes."""
    early = max(0, q.shape[-2] - k.shape[-2]) if causal else 0   # queries before the first key: they see nothing
    late = q.shape[-2] - early
    first = k.shape[-2] - late if causal else k.shape[-2]   # the queries are the last of the keys
    before, after = pieces(first, k), pieces(late, q)
    # split, not sliced one by one: the way back from a slice is as large as the whole
    keys = zip(*(cut(one, before + after * causal) for one in (k, v, factor, real)), strict=True)
    seen: Sums = k.new_zeros(*k.shape[:2], k.shape[-1], v.shape[-1]), k.new_zeros(*k.shape[:2], k.shape[-1])
    for _ in before:
        seen = added(seen, *prepared(*next(keys)))
    if early:
        yield v.new_zeros(*q.shape[:2], early, v.shape[-1])
    for part in q.split([early, *after], dim=-2)[1:]:
        queries = features(part)
        if causal:
            new = prepared(*next(keys))
            yield shares(*running_sums(queries, *new, seen))
            seen = added(seen, *new)
        else:
            yield shares(queries @ seen[0], queries @ seen[1].unsqueeze(-1))


def prepared(k: Tensor, v: Tensor, factor: Tensor | None, real: Tensor | None) -> tuple[Tensor, Tensor]:
    """Features of the keys that are there, and their values with as many digits."""
    k = features(k)
    if factor is not None:
        k = k * factor
    if real is not None:
        k = k.masked_fill(~real, 0)
    return k, v.to(k.dtype)


def added(seen: Sums, k: Float[Tensor, "B H K D"], v: Float[Tensor, "B H K V"]) -> Sums:
    """Σ_j k_j v_jᵀ and Σ_j k_j over what was seen and what is new."""
    return seen[0] + k.transpose(-1, -2) @ v, seen[1] + k.sum(dim=-2)


def running_sums(
    q: Float[Tensor, "B H T D"], k: Float[Tensor, "B H T D"], v: Float[Tensor, "B H T V"], before: Sums
) -> tuple[Float[Tensor, "B H T V"], Float[Tensor, "B H T 1"]]:
    """Σ_j (q·k_j) v_j and Σ_j q·k_j up to each query: pair by pair inside a block, by their sum for all before it."""
    time = q.shape[-2]
    q, k, v = (in_blocks(one) for one in (q, k, v))
    each = k.transpose(-1, -2) @ v, k.sum(dim=-2)
    past, mass = (
        torch.cat((start.unsqueeze(2), block[:, :, :-1]), dim=2).cumsum(dim=2)
        for start, block in zip(before, each, strict=True)
    )
    inside = (q @ k.transpose(-1, -2)).tril()
    mixed = inside @ v + q @ past
    total = inside.sum(dim=-1, keepdim=True) + q @ mass.unsqueeze(-1)
    return mixed.flatten(2, 3)[..., :time, :], total.flatten(2, 3)[..., :time, :]


def pieces(length: int, x: Float[Tensor, "B H T D"]) -> list[int]:
    """How many positions to work on together: larger tensors come new from the system each time, page by page."""
    step = max(1, PIECE // max(1, x[..., :1, :].numel() * BLOCK)) * BLOCK
    if torch.compiler.is_compiling() or length <= step:
        return [length]
    return [step] * (length // step) + [length % step] * (length % step > 0)


def cut(x: Tensor | None, sizes: list[int]) -> Iterable[Tensor | None]:
    """Along time."""
    return x.split(sizes, dim=-2) if x is not None else repeat(None, len(sizes))


def in_blocks(x: Float[Tensor, "B H T D"]) -> Float[Tensor, "B H N T D"]:
    """Cut along time, the last block filled up with zeros."""
    return functional.pad(x, (0, 0, 0, -x.shape[-2] % BLOCK)).unflatten(-2, (-1, BLOCK))
