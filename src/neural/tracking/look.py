"""One attention as it was called: queries, keys, mask. Nothing is written out but a few rows at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from neural.modules.attention.self import softmax
from neural.modules.finite import finite
from neural.modules.late import torch
from neural.modules.mask import Mask, as_bool
from neural.tracking.maps import UNPLACED, Axis, Maps

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int
    from torch import Tensor

CHUNK = 128
"""Rows that are written out together: at n = 8,192 and in 32 bits, 4 MB."""
HIDING = -5e3
"""A bias this low hides a pair. Foreign models write masks as floats, the weakest −10,000, and add
them to products that may be above 0."""
HIDDEN, VISIBLE = -1e30, -1e29
"""The score of a hidden pair, and what every other lies above. Finite: sums with it are never NaN."""


class Part(NamedTuple):
    """Some rows of some heads of some examples."""

    batch: slice
    heads: slice
    rows: slice


@dataclass(frozen=True)
class Look:
    """What one layer's attention was given: its weights are softmax(scale · q·kᵀ + biases) over what the mask keeps."""

    q: Float[Tensor, "B H Q D"]
    k: Float[Tensor, "B G K D"]
    """G heads, each for H / G heads of q in a row (grouped heads)."""
    mask: Mask = field(default_factory=Mask)
    scale: float | None = None
    """1 / √D unless given."""
    tokens: Int[Tensor, "B P"] | None = None
    """Which token each key is that is a position, where a measure asks."""
    real: Bool[Tensor, "B Q"] | None = None
    """The queries that are not padding. Not given: those that `mask.keys` keeps at their positions, as in
    self-attention; give it where queries and keys are of two sequences."""
    first: int | None = None
    """The key that the first query stands at: P − Q unless given (the last query stands at the last
    of P positions). 0 is what torch's `is_causal` means."""
    sink: bool = True
    """False: as if no row could see the first key of its text, the attention sink (see `origins`)."""
    extra_keys: int = 0
    """Number of last keys that are not positions: a learned sink, or what `add_bias_kv` and
    `add_zero_attn` of `nn.MultiheadAttention` append. Entropies and comparisons include them;
    positions and distances do not. Not together with rules of order."""
    axis: Axis = "shared"
    """Whether queries and keys share one axis of positions."""
    has_logits: bool = True
    """False if the model shifted the scores of each row before its softmax."""

    def __post_init__(self) -> None:
        q, k = tuple(self.q.shape), tuple(self.k.shape)
        if len(q) != 4 or len(k) != 4 or q[0] != k[0] or q[3] != k[3]:
            raise ValueError(f"q and k must be (B, H, time, D) with the same B and D, got {q} and {k}")
        if self.heads % self.k.shape[1]:
            raise ValueError(f"the heads of k must divide those of q, got {self.k.shape[1]} and {self.heads}")
        for name, one in (("q", self.q), ("k", self.k)):
            if not finite(one):
                raise ValueError(f"`{name}` has values that are not finite")
        for name, one, shape in (
            ("tokens", self.tokens, (self.batch, self.positions)), ("real", self.real, (self.batch, self.queries))
        ):  # fmt: skip
            if one is not None and tuple(one.shape) != shape:
                raise ValueError(f"`{name}` must have the shape {shape}, got {tuple(one.shape)}")
        self.mask.check(self.q, self.k)
        ordered = self.mask.causal or self.mask.reach is not None or self.mask.segments is not None
        if self.extra_keys and ordered:
            raise ValueError("extra keys have no position: write rules of order out as `pairs`")

    @property
    def batch(self) -> int:
        """Examples."""
        return self.q.shape[0]

    @property
    def heads(self) -> int:
        """Heads of the queries."""
        return self.q.shape[1]

    @property
    def queries(self) -> int:
        """Rows of a map."""
        return self.q.shape[2]

    @property
    def keys(self) -> int:
        """All that a row's weights are spread over."""
        return self.k.shape[2]

    @property
    def positions(self) -> int:
        """Columns of a map: the keys without the extra ones."""
        return self.keys - self.extra_keys

    @property
    def factor(self) -> float:
        """What scores are multiplied with."""
        return self.q.shape[-1] ** -0.5 if self.scale is None else self.scale

    @property
    def start(self) -> int:
        """The key that the first query stands at."""
        return self.positions - self.queries if self.first is None else self.first

    @property
    def before(self) -> int:
        """How many keys before its own position a query may see."""
        return self.keys + self.queries if self.mask.reach is None else self.mask.reach

    @property
    def after(self) -> int:
        """How many keys after its own position a query may see."""
        return 0 if self.mask.causal else self.before

    def at(self, rows: slice = slice(None)) -> Int[Tensor, " Q"]:
        """Where queries stand, counted in keys."""
        return torch.arange(self.start, self.start + self.queries, device=self.q.device)[rows]

    def counted(self) -> Bool[Tensor, "B Q"] | None:
        """The queries that are not padding; None where all count."""
        if self.real is not None:
            return as_bool(self.real)
        inside = self.start >= 0 and self.start + self.queries <= self.positions
        if self.mask.keys is None or self.axis != "shared" or not inside:
            return None
        return as_bool(self.mask.keys).expand(self.batch, self.keys)[:, self.start : self.start + self.queries]

    @cached_property
    def origins(self) -> Int[Tensor, "B Q"]:
        """For every query the first key of its text, where an attention sink would be; −1 where nobody knows.

        That is the first of its packed document; else the first key that is not padding and that any real query sees.
        The edge of a window is not one: where pair by pair rules hide the first keys from a few last queries, they may
        be padding or behind a window.
        """
        shape = (self.batch, self.keys)
        real = torch.ones(shape, dtype=torch.bool, device=self.q.device)
        if self.mask.keys is not None:
            real = as_bool(self.mask.keys).expand(shape)
        by_mask = real.byte().argmax(dim=-1)
        counted = self.counted()
        for rule in (self.mask.pairs, None if self.mask.bias is None else self.mask.bias > HIDING):
            if rule is not None:
                seen = as_bool(rule)[(None,) * (4 - rule.ndim)].any(dim=1)
                seen = seen if counted is None else seen & counted.unsqueeze(-1)
                real = real & seen.any(dim=1).expand(shape)
        if self.mask.segments is not None:
            segments = self.mask.segments.expand(shape)
            own = segments[:, self.at().clamp(0, self.keys - 1)]
            same = (own.unsqueeze(-1) == segments.unsqueeze(1)) & real.unsqueeze(1)
            return same.byte().argmax(dim=-1)
        first = real.byte().argmax(dim=-1)
        if self.queries < self.positions and self.axis == "shared":
            first = torch.where(first == by_mask, first, -1)
        return first.unsqueeze(-1).expand(self.batch, self.queries).contiguous()

    def parts(self, *, heads: int = 1, chunk: int | None = None) -> Iterator[Part]:
        """All rows, `chunk` of `heads` heads at a time: as many as make CHUNK rows of scores unless it is given."""
        chunk = chunk or max(1, CHUNK // heads)
        for example in range(self.batch):
            for head in range(0, self.heads, heads):
                for row in range(0, self.queries, chunk):
                    last = min(row + chunk, self.queries)
                    yield Part(slice(example, example + 1), slice(head, head + heads), slice(row, last))

    def by_key(self, part: Part) -> Float[Tensor, "b h 1 K"] | None:
        """What rules of one key add to its scores: its bias, or HIDDEN for padding; None without such rules."""
        found = None
        if self.mask.key_bias is not None:
            found = self.mask.key_bias.unsqueeze(-2).expand(*self.q.shape[:2], 1, self.keys)[part[:2]].float()
        if self.mask.keys is not None:
            real = as_bool(self.mask.keys).expand(self.batch, self.keys)[part.batch, None, None, :]
            found = torch.where(real, 0.0 if found is None else found, HIDDEN).expand(-1, _size(part.heads), 1, -1)
        return None if found is None else found.clamp(min=HIDDEN)

    def by_pair(self, part: Part) -> Float[Tensor, "b h R K"] | None:
        """What rules of a query and a key together add to their score, but for the order of positions."""
        shape = (self.batch, self.heads, self.queries, self.keys)
        found = None
        if self.mask.bias is not None:
            found = self.mask.bias.expand(shape)[part].float()
            found = found.masked_fill(found <= HIDING, HIDDEN)
        hidden = []
        if self.mask.segments is not None:
            segments = self.mask.segments.expand(self.batch, self.keys)[part.batch]
            own = segments[:, self.at(part.rows).clamp(0, self.keys - 1)]
            hidden.append((own.unsqueeze(-1) != segments.unsqueeze(1)).unsqueeze(1))
        if self.mask.pairs is not None:
            hidden.append(~as_bool(self.mask.pairs.expand(shape)[part]))
        for rule in hidden:
            found = torch.where(rule, HIDDEN, 0.0 if found is None else found)
        return None if found is None else found.expand(*(_size(one) for one in part), -1)

    def maps(self, part: Part | None = None) -> Maps:
        """Some rows written out, or all."""
        part = part or Part(slice(0, self.batch), slice(0, self.heads), slice(0, self.queries))
        group = torch.arange(self.heads, device=self.q.device)[part.heads] // (self.heads // self.k.shape[1])
        scores = self.q[part].float() * self.factor @ self.k[part.batch][:, group].float().transpose(-1, -2)
        for added in (self.by_key(part), self.by_pair(part)):
            if added is not None:
                scores += added
        at = self.at(part.rows)
        ahead = torch.arange(self.keys, device=self.q.device) - at.unsqueeze(-1)
        kept = (ahead <= self.after) & (-ahead <= self.before) & (scores > VISIBLE)
        if not self.sink:
            others = torch.arange(self.keys, device=self.q.device) != self.origins[part.batch, part.rows, None]
            kept = kept & others[:, None]
        return Maps(weights=softmax(scores, kept), kept=kept, scores=scores, **self.placement(part))

    def placement(self, part: Part) -> dict[str, Any]:
        """What `Maps` of these rows say about positions."""
        at = self.at(part.rows)
        return {
            "at": at if self.axis == "shared" else torch.full_like(at, UNPLACED),
            "origins": self.origins[part.batch, part.rows],
            "tokens": None if self.tokens is None else self.tokens[part.batch],
            "extra_keys": self.extra_keys,
            "axis": self.axis,
        }


@contextmanager
def exactly(device: torch.device) -> Iterator[None]:
    """No gradients, and 32 bits also where the training around it uses fewer."""
    with torch.no_grad(), torch.autocast(device.type, enabled=False):
        yield


def _size(one: slice) -> int:
    return one.stop - one.start
