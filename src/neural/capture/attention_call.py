"""One captured attention call: queries, keys, mask. Weights are computed a few rows at a time.

A row is the distribution of one query over the keys. Axes: B examples, H heads, G key heads, Q
queries, K keys, of which the first P are positions of the sequence, D head width.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from neural.capture.attention_maps import UNKNOWN_POSITION, AttentionMaps, Axis
from neural.nn.attention.self import masked_softmax
from neural.nn.checks import is_finite
from neural.nn.lazy_torch import torch
from neural.nn.mask import Mask, as_bool

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int
    from torch import Tensor

ROWS_PER_CHUNK = 128
"""Rows of weights in memory together: 4 MB for 8,192 keys in 32 bits."""
HIDING_BIAS = -5e3
"""A bias this low hides a pair. Models that hide pairs by float masks add −10,000 or less; half of
that leaves room for another, positive bias."""
HIDDEN_SCORE, MIN_VISIBLE_SCORE = -1e30, -1e29
"""Score of a hidden pair, and a lower bound of all others. Finite, so that sums are never NaN."""


class RowBlock(NamedTuple):
    """A block of rows: slices of examples, heads and queries, with start and stop."""

    batch: slice
    heads: slice
    rows: slice


@dataclass(frozen=True)
class AttentionCall:
    """Arguments of one call: its weights are softmax(scale · q·kᵀ + biases) over visible keys."""

    q: Float[Tensor, "B H Q D"]
    k: Float[Tensor, "B G K D"]
    """G heads; each serves H / G consecutive heads of q (grouped-query attention)."""
    mask: Mask = field(default_factory=Mask)
    scale: float | None = None
    """1 / √D if None."""
    tokens: Int[Tensor, "B P"] | None = None
    """Token ids of the keys that are positions, for measures that need them."""
    real: Bool[Tensor, "B Q"] | None = None
    """Queries that are not padding. If None, `mask.keys` at their positions, as in self-attention;
    pass it if queries and keys belong to two sequences."""
    query_offset: int | None = None
    """Key index of the first query. If None, P − Q: the last query is at the last of P positions.
    0 is the meaning of torch's `is_causal`."""
    include_sink: bool = True
    """False hides the first key of the sequence, the attention sink, from every row (`origins`)."""
    extra_keys: int = 0
    """Number of trailing keys that are not positions: a learned sink, or keys that `add_bias_kv` or
    `add_zero_attn` of `nn.MultiheadAttention` append. Entropies and comparisons include them;
    positions and distances do not. Not supported with causal, window or segment masks."""
    axis: Axis = "shared"
    """"shared" if queries and keys are positions of one sequence; otherwise positions of queries are
    unknown, or on another axis. See `Axis`."""
    has_logits: bool = True
    """False if scores are known only up to a constant per row, because the model shifted them before
    its softmax: weights are unaffected, absolute scores are not measured."""

    def __post_init__(self) -> None:
        q, k = tuple(self.q.shape), tuple(self.k.shape)
        if len(q) != 4 or len(k) != 4 or q[0] != k[0] or q[3] != k[3]:
            raise ValueError(
                f"q and k must be (B, H, time, D) with the same B and D, got {q} and {k}"
            )
        if self.heads % self.k.shape[1]:
            raise ValueError(
                f"the heads of k must divide those of q, got {self.k.shape[1]} and {self.heads}"
            )
        for name, tensor in (("q", self.q), ("k", self.k)):
            if not is_finite(tensor):
                raise ValueError(f"`{name}` has values that are not finite")
        for name, tensor, shape in (
            ("tokens", self.tokens, (self.batch, self.positions)),
            ("real", self.real, (self.batch, self.queries)),
        ):
            if tensor is not None and tuple(tensor.shape) != shape:
                raise ValueError(f"`{name}` must have the shape {shape}, got {tuple(tensor.shape)}")
        self.mask.check(self.q, self.k)
        mask = self.mask
        uses_positions = mask.causal or mask.reach is not None or mask.segments is not None
        if self.extra_keys and uses_positions:
            raise ValueError("extra keys have no position: pass the causal mask as `pairs`")

    @property
    def batch(self) -> int:
        """Number of examples."""
        return self.q.shape[0]

    @property
    def heads(self) -> int:
        """Number of query heads."""
        return self.q.shape[1]

    @property
    def queries(self) -> int:
        """Number of queries: rows of a map."""
        return self.q.shape[2]

    @property
    def keys(self) -> int:
        """Number of keys, extra keys included."""
        return self.k.shape[2]

    @property
    def positions(self) -> int:
        """Number of keys without the extra ones: columns of a map."""
        return self.keys - self.extra_keys

    @property
    def score_scale(self) -> float:
        """Factor of the scores."""
        return self.q.shape[-1] ** -0.5 if self.scale is None else self.scale

    @property
    def first_query_position(self) -> int:
        """Key index of the first query."""
        if self.query_offset is not None:
            return self.query_offset
        return self.positions - self.queries

    @property
    def keys_before(self) -> int:
        """Number of keys before its own position that a query may see, by the mask's window."""
        return self.keys + self.queries if self.mask.reach is None else self.mask.reach

    @property
    def keys_after(self) -> int:
        """Number of keys after its own position that a query may see; 0 if causal."""
        return 0 if self.mask.causal else self.keys_before

    def query_positions(self, rows: slice = slice(None)) -> Int[Tensor, " Q"]:
        """Key indices of the queries."""
        start = self.first_query_position
        return torch.arange(start, start + self.queries, device=self.q.device)[rows]

    def valid_queries(self) -> Bool[Tensor, "B Q"] | None:
        """Queries that are not padding; None if all count."""
        if self.real is not None:
            return as_bool(self.real)
        start = self.first_query_position
        end = start + self.queries
        is_inside = start >= 0 and end <= self.positions
        if self.mask.keys is None or self.axis != "shared" or not is_inside:
            return None
        return as_bool(self.mask.keys).expand(self.batch, self.keys)[:, start:end]

    @cached_property
    def origins(self) -> Int[Tensor, "B Q"]:
        """First key of each query's sequence, where an attention sink would be; −1 if unknown.

        In packed sequences, the first key of the query's segment. Otherwise the first key that is
        not padding and that some valid query sees. The edge of a window is not a first key: if
        there are fewer queries than positions and a pairwise mask hides the first keys from them,
        those may be padding or outside a window, and the result is −1.
        """
        shape = (self.batch, self.keys)
        usable = torch.ones(shape, dtype=torch.bool, device=self.q.device)
        if self.mask.keys is not None:
            usable = as_bool(self.mask.keys).expand(shape)
        first_unpadded = usable.byte().argmax(dim=-1)
        valid_queries = self.valid_queries()
        bias_mask = None if self.mask.bias is None else self.mask.bias > HIDING_BIAS
        for pair_mask in (self.mask.pairs, bias_mask):
            if pair_mask is not None:
                visible = as_bool(pair_mask)[(None,) * (4 - pair_mask.ndim)].any(dim=1)
                visible = (
                    visible if valid_queries is None else visible & valid_queries.unsqueeze(-1)
                )
                usable = usable & visible.any(dim=1).expand(shape)
        if self.mask.segments is not None:
            segments = self.mask.segments.expand(shape)
            query_segments = segments[:, self.query_positions().clamp(0, self.keys - 1)]
            is_own_segment = (
                query_segments.unsqueeze(-1) == segments.unsqueeze(1)
            ) & usable.unsqueeze(1)
            return is_own_segment.byte().argmax(dim=-1)
        first_usable = usable.byte().argmax(dim=-1)
        if self.queries < self.positions and self.axis == "shared":
            first_usable = torch.where(first_usable == first_unpadded, first_usable, -1)
        return first_usable.unsqueeze(-1).expand(self.batch, self.queries).contiguous()

    def iter_blocks(self, *, heads: int = 1, chunk: int | None = None) -> Iterator[RowBlock]:
        """Blocks of `chunk` rows of `heads` heads; by default ROWS_PER_CHUNK score rows each."""
        chunk = chunk or max(1, ROWS_PER_CHUNK // heads)
        for example in range(self.batch):
            for head in range(0, self.heads, heads):
                for row in range(0, self.queries, chunk):
                    rows = slice(row, min(row + chunk, self.queries))
                    yield RowBlock(slice(example, example + 1), slice(head, head + heads), rows)

    def key_bias(self, block: RowBlock) -> Float[Tensor, "b h 1 K"] | None:
        """Bias per key: `mask.key_bias`, and HIDDEN_SCORE for padding; None if there is neither."""
        bias = None
        if self.mask.key_bias is not None:
            per_key = self.mask.key_bias.unsqueeze(-2).expand(*self.q.shape[:2], 1, self.keys)
            bias = per_key[block[:2]].float()
        if self.mask.keys is not None:
            real = as_bool(self.mask.keys).expand(self.batch, self.keys)[block.batch, None, None, :]
            bias = torch.where(real, 0.0 if bias is None else bias, HIDDEN_SCORE)
            bias = bias.expand(-1, _slice_length(block.heads), 1, -1)
        return None if bias is None else bias.clamp(min=HIDDEN_SCORE)

    def pair_bias(self, block: RowBlock) -> Float[Tensor, "b h R K"] | None:
        """Bias per pair: `mask.bias`, and HIDDEN_SCORE where segments or `mask.pairs` hide a key.

        The causal mask and the window are not included. R: number of rows of the block.
        """
        shape = (self.batch, self.heads, self.queries, self.keys)
        bias = None
        if self.mask.bias is not None:
            bias = self.mask.bias.expand(shape)[block].float()
            bias = bias.masked_fill(bias <= HIDING_BIAS, HIDDEN_SCORE)
        hidden_pairs = []
        if self.mask.segments is not None:
            segments = self.mask.segments.expand(self.batch, self.keys)[block.batch]
            query_segments = segments[:, self.query_positions(block.rows).clamp(0, self.keys - 1)]
            hidden_pairs.append(
                (query_segments.unsqueeze(-1) != segments.unsqueeze(1)).unsqueeze(1)
            )
        if self.mask.pairs is not None:
            hidden_pairs.append(~as_bool(self.mask.pairs.expand(shape)[block]))
        for hidden in hidden_pairs:
            bias = torch.where(hidden, HIDDEN_SCORE, 0.0 if bias is None else bias)
        return None if bias is None else bias.expand(*map(_slice_length, block), -1)

    def compute_maps(self, block: RowBlock | None = None) -> AttentionMaps:
        """Weights, scores and masks of a block of rows, or of all rows."""
        block = block or self.full_block()
        key_indices = torch.arange(self.keys, device=self.q.device)
        heads_per_key_head = self.heads // self.k.shape[1]
        key_head = torch.arange(self.heads, device=self.q.device)[block.heads] // heads_per_key_head
        k = self.k[block.batch][:, key_head].float()
        scores = self.q[block].float() * self.score_scale @ k.transpose(-1, -2)
        for bias in (self.key_bias(block), self.pair_bias(block)):
            if bias is not None:
                scores += bias
        distance = key_indices - self.query_positions(block.rows).unsqueeze(-1)
        in_window = (distance <= self.keys_after) & (-distance <= self.keys_before)
        visible = in_window & (scores > MIN_VISIBLE_SCORE)
        if not self.include_sink:
            is_other = key_indices != self.origins[block.batch, block.rows, None]
            visible = visible & is_other[:, None]
        return AttentionMaps(
            weights=masked_softmax(scores, visible),
            visible_mask=visible,
            scores=scores,
            **self.position_fields(block),
        )

    def full_block(self) -> RowBlock:
        """The block of all rows."""
        return RowBlock(slice(0, self.batch), slice(0, self.heads), slice(0, self.queries))

    def position_fields(self, block: RowBlock) -> dict[str, Any]:
        """Fields of `AttentionMaps` about positions and tokens, for a block of rows."""
        positions = self.query_positions(block.rows)
        if self.axis != "shared":
            positions = torch.full_like(positions, UNKNOWN_POSITION)
        return {
            "query_positions": positions,
            "origins": self.origins[block.batch, block.rows],
            "tokens": None if self.tokens is None else self.tokens[block.batch],
            "extra_keys": self.extra_keys,
            "axis": self.axis,
        }


@contextmanager
def full_precision(device: torch.device) -> Iterator[None]:
    """No gradients, and 32-bit arithmetic also inside an autocast block."""
    with torch.no_grad(), torch.autocast(device.type, enabled=False):
        yield


def _slice_length(span: slice) -> int:
    return span.stop - span.start
