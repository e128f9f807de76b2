"""Mechanisms whose rows know nothing of each other: `mix` is the definition, on a few queries at a time.

The weights of the queries that are under way are the only ones in memory; where there are more queries than fit at
once, the backward pass computes them again instead of keeping them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

from neural.language.shapes import Cost
from neural.modules.compiled import transforming
from neural.modules.late import functional, late, torch
from neural.modules.mask import Mask, as_bool
from neural.modules.mechanism import Mechanism

if TYPE_CHECKING:
    from jaxtyping import Bool, Float
    from torch import Tensor

checkpoint = late("torch.utils.checkpoint")

AT_ONCE = 2**17
"""Numbers that one head of one example may hold at once: 128 queries at 1,024 keys."""


class RowWise(Mechanism):
    """Base of mechanisms that need all scores of a row to decide its weights."""

    matrices: ClassVar[float] = 2
    """Q×K matrices of 32-bit floats that one backward pass needs, where they are few enough to be kept."""

    def mix(
        self, q: Float[Tensor, "B H Q D"], k: Float[Tensor, "B H K D"], v: Float[Tensor, "B H K V"], mask: Mask,
        dropout: float = 0.0, extra: Tensor | None = None,
    ) -> Float[Tensor, "B H Q V"]:  # fmt: skip
        """The definition on a few queries at a time."""
        return by_rows(self, q, k, v, mask, dropout, extra)

    def cost(self, heads: int, queries: int, keys: int, width: int) -> Cost:
        """Two products of Q×K×D per head; kept are the result and, where they are few, the weights on their way."""
        kept = self.matrices * queries * keys if queries <= rows_at_once(keys) else 0
        return Cost(
            multiply_adds=2 * heads * queries * keys * width, activations=int(heads * (queries * width + kept))
        )


def by_rows(
    mechanism: Mechanism, q: Float[Tensor, "B H Q D"], k: Float[Tensor, "B H K D"], v: Float[Tensor, "B H K V"],
    mask: Mask, dropout: float, extra: Tensor | None, per_weight: int = 1,
) -> Float[Tensor, "B H Q V"]:  # fmt: skip
    """`weights @ v` for a few queries at a time; `per_weight` numbers are held for every weight."""
    queries, keys = q.shape[-2], k.shape[-2]
    if keys == 0:   # nobody to look at: zeros, with a gradient of zeros
        return q.new_zeros(*q.shape[:-1], v.shape[-1]) + q[..., :0].sum()
    step = rows_at_once(keys * per_weight)
    if queries <= step:
        return functional.dropout(mechanism.weights(q, k, mask, extra), dropout) @ v

    def some(first: int) -> Float[Tensor, "B H some V"]:
        last = min(first + step, queries)
        seen = max(1, keys - queries + last) if mask.causal else keys   # what lies ahead of all of them is left out
        part = rows_of(mask, first, last, seen, queries, keys, q.device)
        w = mechanism.weights(q[..., first:last, :], k[..., :seen, :], part, extra)
        return functional.dropout(w, dropout) @ v[..., :seen, :]

    def recomputed(first: int) -> Float[Tensor, "B H some V"]:
        return checkpoint.checkpoint(some, first, use_reentrant=False)

    # the transforms of torch.func have no saved-tensor hooks, which checkpointing needs: they keep the weights
    block = some if transforming() else recomputed
    return torch.cat([block(first) for first in range(0, queries, step)], dim=-2)


def rows_at_once(numbers: int) -> int:
    """How many queries go together, where each needs so many numbers."""
    return max(1, AT_ONCE // numbers)


def rows_of(mask: Mask, first: int, last: int, seen: int, queries: int, keys: int, device: torch.device) -> Mask:
    """The mask of the queries from `first` to before `last` and of the first `seen` keys, as rules pair by pair."""
    at = torch.arange(first, last, device=device).unsqueeze(-1) + keys - queries
    ahead = torch.arange(seen, device=device) - at
    rules = []
    if mask.causal:
        rules.append(ahead <= 0)
    if mask.reach is not None:
        rules.append(ahead.abs() <= mask.reach)
    if mask.segments is not None:
        own = mask.segments[:, keys - queries + first : keys - queries + last, None]
        rules.append((own == mask.segments[:, None, :seen]).unsqueeze(1))
    if mask.pairs is not None:
        pairs = as_bool(mask.pairs)
        rules.append(pairs.expand(*pairs.shape[:-2], queries, keys)[..., first:last, :seen])
    pairs = None
    for rule in rules:
        pairs = rule if pairs is None else pairs & rule
    bias, by_key = mask.bias, mask.key_bias
    return Mask(
        keys=None if mask.keys is None else mask.keys[:, :seen],
        pairs=None if pairs is None else pairs[(None,) * (4 - pairs.ndim)],
        bias=None if bias is None else bias.expand(*bias.shape[:-2], queries, keys)[..., first:last, :seen],
        key_bias=None if by_key is None else by_key.expand(*by_key.shape[:-1], keys)[..., :seen],
    )


def filled(scores: Float[Tensor, "*any"], kept: Bool[Tensor, "*any"] | None) -> Float[Tensor, "*any"]:
    """The lowest number where nothing is to be seen."""
    return scores if kept is None else scores.masked_fill(~kept, torch.finfo(scores.dtype).min)


def projected(
    project: Callable[[Tensor], Tensor], scores: Float[Tensor, "B H Q K"], kept: Bool[Tensor, "#B #H Q K"] | None
) -> Float[Tensor, "B H Q K"]:
    """Rows of weights by sparsemax or one of its kin, which give nothing to what is two or more below the best.

    So all that is further below may stand at the same depth: sums of squares then stay small, whatever the scores.
    """
    wide = scores.to(torch.promote_types(scores.dtype, torch.float32))   # sums along a row need the digits
    best = filled(wide, kept).amax(dim=-1, keepdim=True).detach()
    near = (wide - best).clamp(min=-4.0)
    if kept is None:
        return project(near).to(scores.dtype)
    return project(near.masked_fill(~kept, -4.0)).masked_fill(~kept, 0).to(scores.dtype)
