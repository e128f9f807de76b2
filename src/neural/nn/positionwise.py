"""Attention `weights @ v` in chunks of queries, for mechanisms without a faster algorithm.

A row holds the scores (scaled products of queries and keys) or weights of one query for all keys.
`weights` is the definition of an attention mechanism (mechanism.py); here its rows must not depend
on each other. Only the weights of the current chunk are in memory. With more than one chunk, the
backward pass recomputes the weights instead of saving them. `extra` is the output of the
mechanism's learned module, if it has one.

Axes: B batch, H heads, Q queries, K keys, D head width, V width of values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

from neural.language.shapes import Cost
from neural.nn.kernel_dispatch import is_functorch_active
from neural.nn.lazy_torch import functional, lazy_import, torch
from neural.nn.mask import Mask, as_bool
from neural.nn.mechanism import Mechanism

if TYPE_CHECKING:
    from jaxtyping import Bool, Float
    from torch import Tensor

checkpoint = lazy_import("torch.utils.checkpoint")

CLAMPED_SCORE = -4.0
"""Smallest difference to the largest score of a row in `project_masked_rows`."""
MAX_CHUNK_ELEMENTS = 2**17
"""Most weights in a chunk, for one head of one example: 128 queries with 1,024 keys."""


class PositionwiseMechanism(Mechanism):
    """Base class of mechanisms that compute the weights of a row from all scores of the row."""

    saved_matrices: ClassVar[float] = 2
    """Number of Q×K matrices of 32-bit floats saved for the backward pass of a single chunk.

    A boolean mask, one byte per value, counts as a quarter.
    """

    def attend(
        self,
        q: Float[Tensor, "B H Q D"],
        k: Float[Tensor, "B H K D"],
        v: Float[Tensor, "B H K V"],
        mask: Mask,
        dropout: float = 0.0,
        extra: Tensor | None = None,
    ) -> Float[Tensor, "B H Q V"]:
        """`weights @ v`, computed in chunks of queries."""
        return attend_in_chunks(self, q, k, v, mask, dropout, extra)

    def cost(self, heads: int, queries: int, keys: int, width: int) -> Cost:
        """Two products of Q·K·D multiply-adds per head.

        The output is saved for the backward pass and, with a single chunk, the weights.
        """
        saved = self.saved_matrices * queries * keys if queries <= chunk_rows(keys) else 0
        return Cost(
            multiply_adds=2 * heads * queries * keys * width,
            activations=int(heads * (queries * width + saved)),
        )


def attend_in_chunks(
    mechanism: Mechanism,
    q: Float[Tensor, "B H Q D"],
    k: Float[Tensor, "B H K D"],
    v: Float[Tensor, "B H K V"],
    mask: Mask,
    dropout: float,
    extra: Tensor | None,
    elements_per_weight: int = 1,
) -> Float[Tensor, "B H Q V"]:
    """`weights @ v` in chunks of queries.

    `elements_per_weight` is the number of values in memory that `weights` needs for each weight.
    """
    queries, keys = q.shape[-2], k.shape[-2]
    if keys == 0:  # the empty sum gives q a gradient of zeros, not None
        return q.new_zeros(*q.shape[:-1], v.shape[-1]) + q[..., :0].sum()
    step = chunk_rows(keys * elements_per_weight)
    if queries <= step:
        return functional.dropout(mechanism.weights(q, k, mask, extra), dropout) @ v

    def attend_chunk(first: int) -> Float[Tensor, "B H chunk V"]:
        last = min(first + step, queries)
        # A causal chunk needs no keys after its last query.
        visible_keys = max(1, keys - queries + last) if mask.causal else keys
        chunk_mask = slice_mask(
            mask,
            first=first,
            last=last,
            visible_keys=visible_keys,
            queries=queries,
            keys=keys,
            device=q.device,
        )
        weights = mechanism.weights(
            q[..., first:last, :], k[..., :visible_keys, :], chunk_mask, extra
        )
        return functional.dropout(weights, dropout) @ v[..., :visible_keys, :]

    def attend_checkpointed(first: int) -> Float[Tensor, "B H chunk V"]:
        return checkpoint.checkpoint(attend_chunk, first, use_reentrant=False)

    # Checkpointing needs saved-tensor hooks, which torch.func transforms do not support: there the
    # weights are saved.
    attend_rows = attend_chunk if is_functorch_active() else attend_checkpointed
    return torch.cat([attend_rows(first) for first in range(0, queries, step)], dim=-2)


def chunk_rows(elements_per_row: int) -> int:
    """Queries per chunk if each of them needs `elements_per_row` values."""
    return max(1, MAX_CHUNK_ELEMENTS // elements_per_row)


def slice_mask(
    mask: Mask,
    first: int,
    last: int,
    visible_keys: int,
    queries: int,
    keys: int,
    device: torch.device,
) -> Mask:
    """The mask of queries `first` to `last` (exclusive) and of the first `visible_keys` keys.

    `queries` and `keys` are the sizes of the full mask. Rules that depend on positions become a
    rule for each pair of a query and a key (`Mask.pairs`).
    """
    positions = torch.arange(first, last, device=device).unsqueeze(-1) + keys - queries
    ahead = torch.arange(visible_keys, device=device) - positions  # key minus query position
    rules = []
    if mask.causal:
        rules.append(ahead <= 0)
    if mask.reach is not None:
        rules.append(ahead.abs() <= mask.reach)
    if mask.segments is not None:
        query_segments = mask.segments[:, keys - queries + first : keys - queries + last, None]
        rules.append((query_segments == mask.segments[:, None, :visible_keys]).unsqueeze(1))
    if mask.pairs is not None:
        full_pairs = as_bool(mask.pairs)
        rules.append(
            full_pairs.expand(*full_pairs.shape[:-2], queries, keys)[..., first:last, :visible_keys]
        )
    pairs = None
    for rule in rules:
        pairs = rule if pairs is None else pairs & rule
    bias, key_bias = mask.bias, mask.key_bias
    return Mask(
        keys=None if mask.keys is None else mask.keys[:, :visible_keys],
        pairs=None if pairs is None else pairs[(None,) * (4 - pairs.ndim)],
        bias=None
        if bias is None
        else bias.expand(*bias.shape[:-2], queries, keys)[..., first:last, :visible_keys],
        key_bias=None
        if key_bias is None
        else key_bias.expand(*key_bias.shape[:-1], keys)[..., :visible_keys],
    )


def fill_masked(
    scores: Float[Tensor, "*any"], keep_mask: Bool[Tensor, "*any"] | None
) -> Float[Tensor, "*any"]:
    """Scores with the lowest float where `keep_mask` is False."""
    return (
        scores
        if keep_mask is None
        else scores.masked_fill(~keep_mask, torch.finfo(scores.dtype).min)
    )


def project_masked_rows(
    project: Callable[[Tensor], Tensor],
    scores: Float[Tensor, "B H Q K"],
    keep_mask: Bool[Tensor, "#B #H Q K"] | None,
) -> Float[Tensor, "B H Q K"]:
    """Weights by `project`, which is sparsemax or 1.5-entmax of each row, with masked keys at 0.

    Both give weight 0 to scores that are 2 or more below the largest of the row. So lower scores
    may be raised to CLAMPED_SCORE below the largest, which keeps sums of squares small.
    """
    # Sums along a row need at least 32 bits.
    precise = scores.to(torch.promote_types(scores.dtype, torch.float32))
    largest = fill_masked(precise, keep_mask).amax(dim=-1, keepdim=True).detach()
    shifted = (precise - largest).clamp(min=CLAMPED_SCORE)
    if keep_mask is None:
        return project(shifted).to(scores.dtype)
    weights = project(shifted.masked_fill(~keep_mask, CLAMPED_SCORE)).masked_fill(~keep_mask, 0)
    return weights.to(scores.dtype)
