"""Positions of the queries of an attention call among its keys.

An attention call has queries and keys, but does not say which key is at which position. With as
many queries as keys it is self-attention over a whole sequence. With fewer it may be a step of
cached generation, a static cache with empty slots, cross-attention, or pooling. Only evidence
decides: the update of a transformers cache, the staircase of a causal mask, or keys that continue
those of the previous call. Without evidence, positions are unknown, and the measures that need
them are left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from neural.modules.late import torch
from neural.tracking.maps import Axis

if TYPE_CHECKING:
    from jaxtyping import Bool, Float
    from torch import Tensor

    from neural.tracking.look import Look

TWO_SEQUENCES = (
    "queries and keys are of two sequences: measures that compare their positions do not apply"
)


class CacheUpdate(NamedTuple):
    """One update of a cache layer of transformers."""

    added: int
    """New keys; in self-attention, one for every query."""
    returned: int
    """Keys returned to the attention module, empty slots included."""
    filled: int
    """Returned keys in use: the first ones, ending with the new keys."""


@dataclass(frozen=True)
class Placement:
    """Positions of one call."""

    axis: Axis
    keys: int
    """Number of leading keys in use; the rest are empty slots of a static cache."""
    first: int | None = None
    """Index of the key at the position of the first query, if both share an axis."""
    note: str = ""
    """Why measures of positions are left out."""


def place(
    queries: int,
    k: Float[Tensor, "B G K D"],
    *,
    is_cross: bool,
    visible: Bool[Tensor, "b h Q K"] | None,
    update: CacheUpdate | None,
    previous: Look | None,
    length: int | None = None,
) -> Placement:
    """Place the queries of a call without `is_causal`.

    `visible`: the keys that each query may see; None for all. `previous`: the last call of the same
    module. `length`: the length of the query projection's input.
    """
    keys = k.shape[2]
    if is_cross:
        return Placement("keys", keys, note=TWO_SEQUENCES)
    if length is not None and length != queries:
        return Placement(
            "unknown",
            keys,
            note=f"only {queries} of {length} queries attend, at unknown positions",
        )
    filled = _filled_by_cache(queries, keys, update)
    if filled is None and queries == keys:
        return Placement("shared", keys, first=0)
    if filled is None:
        filled = _filled_by_staircase(queries, visible)
    if filled is None:
        filled = _filled_by_history(queries, k, previous)
    # a key behind the last query that some query may see is not an empty slot
    if filled is None or not _hidden_from(filled, keys, visible):
        reason = f"the positions of {queries} queries among {keys} keys are unknown"
        advice = "no mask, cache or earlier call shows them"
        return Placement("unknown", keys, note=f"{reason}: {advice}")
    return Placement("shared", filled, first=filled - queries)


def _filled_by_cache(queries: int, keys: int, update: CacheUpdate | None) -> int | None:
    if update is None or (update.added, update.returned) != (queries, keys):
        return None
    return update.filled


def _filled_by_staircase(queries: int, visible: Tensor | None) -> int | None:
    """By a causal mask: the last visible key moves by one from row to row.

    In every example and head. The last rows of a right-padded example end at the same key; rows of
    left padding see nothing.
    """
    if visible is None or queries < 2 or visible.shape[2] != queries:
        return None
    keys, rows = visible.shape[-1], torch.arange(queries, device=visible.device)
    last = (
        (keys - 1 - visible.flip(-1).byte().argmax(dim=-1))
        .masked_fill(~visible.any(dim=-1), -1)
        .flatten(0, 1)
    )
    first = int((last - rows).masked_fill(last < 0, -queries).amax())
    stairs = (first + rows).expand_as(last)
    fits = (last < 0) | (last == torch.minimum(stairs, last.amax(dim=1, keepdim=True)))
    if (
        first < 0
        or first + queries > keys
        or not fits.all()
        or (last == stairs).sum(dim=1).amax() < 2
    ):
        return None
    return first + queries


def _filled_by_history(queries: int, k: Tensor, previous: Look | None) -> int | None:
    """By the previous call, if its keys are the first of these and it ended at its last key."""
    if previous is None or previous.axis != "shared" or previous.extra_keys:
        return None
    before = previous.keys
    if previous.start + previous.queries != before or before + queries > k.shape[2]:
        return None
    older, newer = previous.k, k[:, :, :before]
    # scores of a written-out softmax are recorded with keys of zeros: they prove nothing
    if (
        older.shape != newer.shape
        or not older.any()
        or not torch.equal(older, newer.to(older.dtype))
    ):
        return None
    return before + queries


def _hidden_from(filled: int, keys: int, visible: Tensor | None) -> bool:
    if filled == keys:
        return True
    return visible is not None and not bool(visible[..., filled:].any())
