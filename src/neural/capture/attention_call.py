"""One captured attention call: queries, keys, mask. Weights are computed a few rows at a time.

A row is the distribution of one query over the keys. A pair is a query and a key; it is hidden if
the mask excludes it, and otherwise the query sees the key. Axes: B examples, H heads, G key heads,
Q queries, K keys, of which the first P are positions of the sequence, D head width.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from neural.capture.attention_maps import UNKNOWN_POSITION, AttentionMaps, KnownPositions
from neural.nn.attention.self import masked_softmax
from neural.nn.checks import is_finite
from neural.nn.lazy_torch import torch
from neural.nn.mask import Mask, as_bool

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int
    from torch import Tensor

ROWS_PER_CHUNK = 128
"""Rows of weights that are in memory together. With 8,192 keys they take 4 MB in 32 bits."""
HIDING_BIAS = -5e3
"""A bias this low or lower hides a pair. Models that hide pairs by float masks add −10,000 or less;
the threshold is half of that, because a model may add a positive bias to it."""
HIDDEN_SCORE, MIN_VISIBLE_SCORE = -1e30, -1e29
"""Score of a hidden pair, and a lower bound of the scores of all other pairs. They are finite, so
that sums are never NaN."""


class RowBlock(NamedTuple):
    """A block of rows: slices of examples, heads and queries, with start and stop."""

    batch: slice
    heads: slice
    rows: slice


@dataclass(frozen=True)
class AttentionCall:
    """Arguments of one call. Its weights are softmax(scale · q·kᵀ + biases) over visible keys."""

    q: Float[Tensor, "B H Q D"]
    k: Float[Tensor, "B G K D"]
    """Keys of G heads; H / G consecutive heads of q share one (grouped-query attention)."""
    mask: Mask = field(default_factory=Mask)
    scale: float | None = None
    """Factor of the dot products; 1 / √D if None."""
    tokens: Int[Tensor, "B P"] | None = None
    """Token ids of the keys that are positions, for measures that need them."""
    real: Bool[Tensor, "B Q"] | None = None
    """True for queries that are not padding. If None, `mask.keys` at their positions is used, as in
    self-attention; pass `real` if queries and keys belong to two sequences."""
    query_offset: int | None = None
    """Key index of the first query. If None, it is P − Q: the last query is at the last of P
    positions. With torch's `is_causal=True` it is 0."""
    include_sink: bool = True
    """False hides the first key of the sequence, the attention sink, from every row."""
    extra_keys: int = 0
    """Number of trailing keys that are not positions: a learned sink, or keys that `add_bias_kv` or
    `add_zero_attn` of `nn.MultiheadAttention` append. Entropies and comparisons include them;
    positions and distances do not. Not supported with causal, window or segment masks."""
    known_positions: KnownPositions = "queries_and_keys"
    """Whose positions are known. "queries_and_keys" if both are positions of one sequence, as in
    self-attention; otherwise the positions of the queries are unknown or of another sequence."""
    has_logits: bool = True
    """False if scores are known only up to a constant per row, because the model shifted them
    before its softmax. Weights are unaffected; absolute scores are not measured."""

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
    def is_signed(self) -> bool:
        """Whether weights may be negative; never those of a softmax."""
        return False

    @property
    def score_scale(self) -> float:
        """Factor of the dot products."""
        return self.q.shape[-1] ** -0.5 if self.scale is None else self.scale

    @property
    def first_query_position(self) -> int:
        """Key index of the first query."""
        if self.query_offset is not None:
            return self.query_offset
        return self.positions - self.queries

    @property
    def keys_before(self) -> int:
        """Number of keys before its own position that a query may see; all without a window."""
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
        """True for queries that are not padding; None if none is padding."""
        if self.real is not None:
            return as_bool(self.real)
        start = self.first_query_position
        end = start + self.queries
        is_inside = start >= 0 and end <= self.positions
        if self.mask.keys is None or self.known_positions != "queries_and_keys" or not is_inside:
            return None
        return as_bool(self.mask.keys).expand(self.batch, self.keys)[:, start:end]

    @cached_property
    def first_keys(self) -> Int[Tensor, "B Q"]:
        """First key of each query's sequence, where an attention sink would be; −1 if unknown.

        In packed sequences it is the first key of the query's segment (document). Otherwise it is
        the first key that is not padding and that some valid query sees. The left end of a sliding
        window is not a first key. If there are fewer queries than positions, and a pairwise mask
        hides the first keys from them, these may be padding or outside a window: so the result is
        −1.
        """
        shape = (self.batch, self.keys)
        if self.keys == 0:
            return torch.full((self.batch, self.queries), -1, device=self.q.device)
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
        if self.queries < self.positions and self.known_positions == "queries_and_keys":
            first_usable = torch.where(first_usable == first_unpadded, first_usable, -1)
        return first_usable.unsqueeze(-1).expand(self.batch, self.queries).contiguous()

    def iter_blocks(self, *, heads: int = 1, chunk: int | None = None) -> Iterator[RowBlock]:
        """Blocks of `chunk` rows of `heads` heads of one example.

        By default a block has ROWS_PER_CHUNK rows, those of all its heads counted.
        """
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
            is_other = key_indices != self.first_keys[block.batch, block.rows, None]
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
        if self.known_positions != "queries_and_keys":
            positions = torch.full_like(positions, UNKNOWN_POSITION)
        return {
            "query_positions": positions,
            "first_keys": self.first_keys[block.batch, block.rows],
            "tokens": None if self.tokens is None else self.tokens[block.batch],
            "extra_keys": self.extra_keys,
            "known_positions": self.known_positions,
        }


@contextmanager
def full_precision(device: torch.device) -> Iterator[None]:
    """Block without gradients, in 32-bit arithmetic even inside an autocast block."""
    with torch.no_grad(), torch.autocast(device.type, enabled=False):
        yield


def _slice_length(span: slice) -> int:
    return span.stop - span.start
