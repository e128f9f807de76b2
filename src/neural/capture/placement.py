"""Positions of the queries of an attention call among its keys.

An attention call has queries and keys, but does not say which key is at which position. With as
many queries as keys it is self-attention over a whole sequence. With fewer it may be a step of
cached generation, a static cache with empty slots, cross-attention, or pooling. Only evidence
decides: the update of a transformers cache, the diagonal of a causal mask, or keys that continue
those of the previous call. Without evidence, positions are unknown, and the measures that need
them are left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from neural.capture.attention_maps import KnownPositions
from neural.nn.lazy_torch import torch

if TYPE_CHECKING:
    from jaxtyping import Bool, Float
    from torch import Tensor

    from neural.capture.attention_call import AttentionCall

TWO_SEQUENCES = (
    "queries and keys are of two sequences: measures that compare their positions do not apply"
)
"""Note of calls of cross-attention."""


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
    """Positions of the queries and keys of one call."""

    known_positions: KnownPositions
    """Which positions of this call are known (attention_maps.py)."""
    keys: int
    """Number of leading keys in use; the rest are empty slots of a static cache."""
    query_offset: int | None = None
    """Key index of the first query, if the positions of both are known."""
    note: str = ""
    """Why measures of positions are left out; empty if they are included."""


def place_queries(
    queries: int,
    k: Float[Tensor, "B G K D"],
    *,
    is_cross: bool,
    visible: Bool[Tensor, "b h Q K"] | None,
    update: CacheUpdate | None,
    previous: AttentionCall | None,
    projected_length: int | None = None,
) -> Placement:
    """Find the positions of the queries of a call among its keys.

    For calls without torch's `is_causal`, which puts the first query at the first key.
    `is_cross`: queries and keys come from two sequences. `update`: the cache update that returned
    these keys. `visible`: the keys that each query may see; None for all. `previous`: the last call
    of the same module. `projected_length`: the length of the query projection's input.
    """
    keys = k.shape[2]
    if is_cross:
        return Placement("keys", keys, note=TWO_SEQUENCES)
    if projected_length is not None and projected_length != queries:
        return Placement(
            "none",
            keys,
            note=f"only {queries} of {projected_length} queries attend, at unknown positions",
        )
    filled = _count_filled_by_cache(queries, keys, update)
    if filled is None and queries == keys:
        return Placement("queries_and_keys", keys, query_offset=0)
    if filled is None:
        filled = _count_filled_by_causal_mask(queries, visible)
    if filled is None:
        filled = _count_filled_by_previous_call(queries, k, previous)
    # a key after the last query that some query may see is not an empty slot
    if filled is None or not _is_hidden_after(filled, keys, visible):
        problem = f"the positions of {queries} queries among {keys} keys are unknown"
        reason = "no mask, cache or earlier call shows them"
        return Placement("none", keys, note=f"{problem}: {reason}")
    return Placement("queries_and_keys", filled, query_offset=filled - queries)


def _count_filled_by_cache(queries: int, keys: int, update: CacheUpdate | None) -> int | None:
    """Number of keys in use according to a cache update; None if no update has these sizes."""
    if update is None or (update.added, update.returned) != (queries, keys):
        return None
    return update.filled


def _count_filled_by_causal_mask(queries: int, visible: Tensor | None) -> int | None:
    """Number of keys in use according to a causal mask; None if the mask is not causal.

    In a causal mask the last visible key moves by one from row to row, in every example and head.
    Exceptions are padding: the last rows of a right-padded example all end at its last key, and
    rows of left padding see nothing.
    """
    if visible is None or queries < 2 or visible.shape[2] != queries:
        return None
    keys, rows = visible.shape[-1], torch.arange(queries, device=visible.device)
    last_visible = (
        (keys - 1 - visible.flip(-1).byte().argmax(dim=-1))
        .masked_fill(~visible.any(dim=-1), -1)
        .flatten(0, 1)
    )
    first_query_key = int((last_visible - rows).masked_fill(last_visible < 0, -queries).amax())
    diagonal = (first_query_key + rows).expand_as(last_visible)
    fits = (last_visible < 0) | (
        last_visible == torch.minimum(diagonal, last_visible.amax(dim=1, keepdim=True))
    )
    if (
        first_query_key < 0
        or first_query_key + queries > keys
        or not fits.all()
        or (last_visible == diagonal).sum(dim=1).amax() < 2  # one row alone shows no diagonal
    ):
        return None
    return first_query_key + queries


def _count_filled_by_previous_call(
    queries: int, k: Tensor, previous: AttentionCall | None
) -> int | None:
    """Number of keys in use if the first keys are those of the previous call of the module.

    The previous call must have ended at its last key: then the new keys continue it, one for each
    query. None if not.
    """
    if previous is None or previous.known_positions != "queries_and_keys" or previous.extra_keys:
        return None
    previous_keys = previous.keys
    if (
        previous.first_query_position + previous.queries != previous_keys
        or previous_keys + queries > k.shape[2]
    ):
        return None
    old_k, same_part_of_k = previous.k, k[:, :, :previous_keys]
    # `record_softmax` (attention_functions.py) records keys of zeros, which are equal without proof
    if (
        old_k.shape != same_part_of_k.shape
        or not old_k.any()
        or not torch.equal(old_k, same_part_of_k.to(old_k.dtype))
    ):
        return None
    return previous_keys + queries


def _is_hidden_after(filled: int, keys: int, visible: Tensor | None) -> bool:
    """Whether no query may see a key after the first `filled` ones."""
    if filled == keys:
        return True
    return visible is not None and not bool(visible[..., filled:].any())
