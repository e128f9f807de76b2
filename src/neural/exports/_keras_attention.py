"""Attention in Keras: its own multi-head attention where that is a softmax under a mask, else operations.

Keras' layer covers full, causal and windowed attention. Other mechanisms, and positions that work
inside attention, are written out with `keras.ops`: projections are layers, so that the file can be
trained on, and the weights between them are computed as `weights` of the mechanism says.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import log
from typing import TYPE_CHECKING, Any

import numpy as np

from neural.core.names import snake
from neural.modules.attention.additive import Additive
from neural.modules.attention.boundary_aware import BoundaryAware
from neural.modules.attention.causal import Causal
from neural.modules.attention.cross import Cross
from neural.modules.attention.entmax15 import Entmax15
from neural.modules.attention.hard import Hard
from neural.modules.attention.linear import Linear
from neural.modules.attention.localized import Localized
from neural.modules.attention.self import Self
from neural.modules.attention.sparse import Sparse
from neural.modules.attention.sparsemax import Sparsemax
from neural.modules.attention.topk import Topk
from neural.modules.attention.uniform import Uniform
from neural.modules.heads import EPSILON
from neural.modules.position import InsideAttention
from neural.modules.positions.alibi import AlibiPositions
from neural.modules.positions.relative import RelativePositions
from neural.modules.positions.rotary import RotaryPositions

if TYPE_CHECKING:
    from neural.exports._keras_words import Words
    from neural.modules.heads import Heads

LOWEST = -3e38
"""Below every score; finite, because the file is JSON."""
KERAS_OWN = (Self, Cross, Causal, Localized)
"""What Keras' own layer does, given a mask."""
POSITIONS = (RotaryPositions, AlibiPositions, RelativePositions)


def no_words_for(heads: Heads) -> list[str]:
    """What cannot be said in Keras about an attention of ours."""
    reasons = []
    if type(heads.mechanism) not in WEIGHTS:
        name = snake(type(heads.mechanism).__name__)
        reasons.append(f'attention="{name}": the mechanism of another package has no words there')
    if isinstance(heads.mechanism, Sparse) and heads.mechanism.random_blocks:
        reasons.append("random_blocks: they are drawn by operations on 64-bit integers")
    if heads.position is not None and not (_is_idle(heads.position) or _is_known(heads.position)):
        name = snake(type(heads.position).__name__.removesuffix("Positions"))
        reasons.append(f'positional="{name}": the positions of another package have no words there')
    return reasons


def _is_idle(position: InsideAttention) -> bool:
    """Whether a position does nothing: `positional="none"`."""
    own = [
        name
        for one in type(position).__mro__
        if issubclass(one, InsideAttention) and one is not InsideAttention
        for name in vars(one)
    ]
    return not list(position.parameters()) and not {"rotate", "bias", "key_bias"} & set(own)


def _is_known(position: InsideAttention) -> bool:
    """Whether it is one of ours, and not of a class that derives from ours elsewhere."""
    is_ours = type(position).__module__.startswith("neural.modules.")
    return is_ours and isinstance(position, POSITIONS)


def attention_words(
    words: Words, x: Any, heads: Heads, name: str, *, mask: Any = None, memory: Any = None
) -> Any:
    """What the heads give for `x`, looking at itself or at `memory`; `mask` is of what is looked at."""
    is_idle = heads.position is None or _is_idle(heads.position)
    if type(heads.mechanism) in KERAS_OWN and is_idle and not heads.qk_norm:
        return _keras_layer(words, x, heads, name, mask, memory)
    return _written_out(words, x, heads, name, mask, memory)


def _keras_layer(words: Words, x: Any, heads: Heads, name: str, mask: Any, memory: Any) -> Any:
    """Keras' attention with our projections, which it keeps as (width, heads, head width)."""
    source = x if memory is None else memory
    inner, width = heads.query.out_features, heads.head_width
    count, shared = inner // width, inner // width // heads.groups
    rules = [] if mask is None else [words.ops.expand_dims(mask, 1)]
    if isinstance(heads.mechanism, Localized):
        rules.append(_is_near(words, x, source, heads.mechanism.window // 2))
    causal = heads.causal or isinstance(heads.mechanism, Causal)
    call = {"value": source, "key": source, "use_causal_mask": causal}
    if rules:
        call["attention_mask"] = _both(words, rules)
    weights = []
    for linear, many in ((heads.query, count), (heads.key, shared), (heads.value, shared)):
        weights.append(linear.weight.T.reshape(-1, many, width))
        weights += [] if linear.bias is None else [linear.bias.reshape(many, width)]
    weights.append(heads.output.weight.T.reshape(count, width, -1))
    weights += [] if heads.output.bias is None else [heads.output.bias]
    options = {"use_bias": heads.query.bias is not None, "dropout": heads.dropout, "call": call}
    kind, sizes = "MultiHeadAttention", (count, width)
    if heads.groups > 1:
        kind, sizes = "GroupQueryAttention", (width, count, shared)
    y = words.put(kind, f"{name}_heads", x, weights, *sizes, **options)
    if mask is None:
        return y
    # Keras averages over everything where nothing is to be seen; here that gives zeros, and the bias
    bias = 0.0 if heads.output.bias is None else heads.output.bias.detach().numpy()
    any_key = words.ops.expand_dims(words.ops.any(mask, axis=1, keepdims=True), -1)
    return words.ops.where(any_key, y, bias)


@dataclass(frozen=True)
class Scored:
    """Queries and keys (B, H, T, D) of one attention, with the scores of their pairs (B, H, Q, K)."""

    words: Words
    heads: Any
    name: str
    q: Any
    k: Any
    source: Any
    """The sequence that is looked at, (B, K, E)."""
    bias: Any
    """What is added to the scores, or None."""
    kept: Any
    """True where a query sees a key, or None."""

    @property
    def scores(self) -> Any:
        """q·kᵀ / √D and the bias."""
        keys = self.words.ops.transpose(self.k, (0, 1, 3, 2))
        return self.biased(self.words.ops.matmul(self.q, keys) / self.heads.head_width**0.5)

    def biased(self, scores: Any) -> Any:
        """With the bias, where there is one."""
        return scores if self.bias is None else scores + self.bias

    def filled(self, scores: Any, value: float = LOWEST) -> Any:
        """Another number where nothing is to be seen."""
        return scores if self.kept is None else self.words.ops.where(self.kept, scores, value)

    def softmax(self, scores: Any) -> Any:
        """Over the visible keys; zeros where there are none."""
        return self.filled(self.words.ops.softmax(self.filled(scores)), 0.0)


def _written_out(words: Words, x: Any, heads: Heads, name: str, mask: Any, memory: Any) -> Any:
    """Projections by layers, weights by operations."""
    ops, source = words.ops, x if memory is None else memory
    q = _split(words, x, heads.query, heads.head_width, f"{name}_query")
    k = _split(words, source, heads.key, heads.head_width, f"{name}_key")
    v = _split(words, source, heads.value, heads.head_width, f"{name}_value")
    if heads.qk_norm:
        q, k = (one * ops.rsqrt(ops.mean(one * one, -1, keepdims=True) + EPSILON) for one in (q, k))
    if heads.position is not None and _is_known(heads.position):
        q, k = _rotated(words, heads, q, x), _rotated(words, heads, k, source)
    if heads.groups > 1:
        k, v = ops.repeat(k, heads.groups, axis=1), ops.repeat(v, heads.groups, axis=1)
    rules = [] if mask is None else [ops.expand_dims(mask, 1)]
    if heads.causal or isinstance(heads.mechanism, Causal):
        rules.append(_ahead(words, x, source) <= 0)
    if isinstance(heads.mechanism, Localized):
        rules.append(_is_near(words, x, source, heads.mechanism.window // 2))
    if isinstance(heads.mechanism, Sparse):
        rules.append(_pattern(words, heads.mechanism, x, source))
    kept = ops.expand_dims(_both(words, rules), 1) if rules else None
    bias = _position_bias(words, heads, name, x, source)
    weights = WEIGHTS[type(heads.mechanism)](
        Scored(words, heads, name, q, k, source, bias, kept)
    )
    if heads.dropout:
        weights = words.put("Dropout", f"{name}_dropout", weights, [], heads.dropout)
    mixed = ops.transpose(ops.matmul(weights, v), (0, 2, 1, 3))
    joined = words.put("Reshape", f"{name}_joined", mixed, [], (-1, heads.output.in_features))
    return words.dense(joined, heads.output, f"{name}_output")


def _split(words: Words, x: Any, linear: Any, width: int, name: str) -> Any:
    """(B, T, E) → (B, H, T, D)."""
    heads = linear.out_features // width
    parts = words.put("Reshape", f"{name}_split", words.dense(x, linear, name), [], (-1, heads, width))
    return words.ops.transpose(parts, (0, 2, 1, 3))


def _both(words: Words, rules: list[Any]) -> Any:
    allowed = rules[0]
    for rule in rules[1:]:
        allowed = words.ops.logical_and(allowed, rule)
    return allowed


def _ahead(words: Words, x: Any, source: Any) -> Any:
    """How far each key lies ahead of each query, (B, Q, K)."""
    at, key = words.places(x), words.places(source)
    return words.ops.expand_dims(key, 1) - words.ops.expand_dims(at, 2)


def _is_near(words: Words, x: Any, source: Any, reach: int) -> Any:
    return words.ops.abs(_ahead(words, x, source)) <= reach


def _pattern(words: Words, mechanism: Sparse, x: Any, source: Any) -> Any:
    """Who sees whom in sparse attention, (B, Q, K)."""
    ops = words.ops
    at, key = ops.expand_dims(words.places(x), 2), ops.expand_dims(words.places(source), 1)
    seen = ops.logical_or(ops.abs(key - at) <= mechanism.window // 2, key < mechanism.global_tokens)
    seen = ops.logical_or(seen, at < mechanism.global_tokens)
    if mechanism.stride is not None:
        seen = ops.logical_or(seen, ops.equal(ops.mod(key, mechanism.stride), 0))
    return seen


def _rotated(words: Words, heads: Any, x: Any, sequence: Any) -> Any:
    """Queries or keys turned by their positions."""
    if not isinstance(heads.position, RotaryPositions):
        return x
    ops, half = words.ops, heads.head_width // 2
    rates = heads.position.base ** (-np.arange(half, dtype=np.float32) / half)
    time = ops.expand_dims(ops.expand_dims(words.places(sequence), 1), -1)
    angles = time * rates.astype(np.float32)
    cos, sin = ops.cos(angles), ops.sin(angles)
    left, right = x[..., :half], x[..., half:]
    return ops.concatenate([left * cos - right * sin, left * sin + right * cos], axis=-1)


def _position_bias(words: Words, heads: Any, name: str, x: Any, source: Any) -> Any:
    """What positions add to the scores, (B, H, Q, K), or None."""
    ops, position = words.ops, heads.position
    if isinstance(position, AlibiPositions):
        steps = np.arange(1, position.heads + 1, dtype=np.float32)
        slopes = np.exp2(-8 * steps / position.heads).astype(np.float32)[None, :, None, None]
        return -ops.expand_dims(ops.abs(_ahead(words, x, source)), 1) * slopes
    if not isinstance(position, RelativePositions):
        return None
    behind = -_ahead(words, x, source)
    buckets = position.buckets if position.causal else position.buckets // 2
    distance = ops.maximum(behind, 0.0) if position.causal else ops.abs(behind)
    single = max(1, buckets // 2)
    spread = log(max(position.max_distance / single, 2.0))
    growth = ops.log(ops.maximum(distance, 1.0) / single) / spread * (buckets - single)
    far = ops.minimum(ops.floor(single + growth), float(buckets - 1))
    bucket = ops.where(distance < single, distance, far)
    if not position.causal:
        bucket = bucket + ops.where(behind < 0, float(buckets), 0.0)
    table = position.table.weight
    bias = words.put("Embedding", f"{name}_distance", ops.cast(bucket, "int32"), [table], *table.shape)
    return ops.transpose(bias, (0, 3, 1, 2))


# --- the weights of every mechanism -------------------------------------------------------------------


def _softmax(one: Scored) -> Any:
    return one.softmax(one.scores)


def _boundary_aware(one: Scored) -> Any:
    """The key's half of the boundary scores is a bias; the query's half cancels."""
    words, scorer = one.words, one.heads.learned
    up = words.ops.relu(words.dense(one.source, scorer.up, f"{one.name}_boundary_up"))
    logits = words.dense(up, scorer.down, f"{one.name}_boundary_down")
    half = words.ops.sigmoid(logits / scorer.temperature) / 2
    return one.softmax(one.scores + words.ops.expand_dims(words.ops.transpose(half, (0, 2, 1)), 1))


def _additive(one: Scored) -> Any:
    """softmax(u · tanh(q + k))."""
    ops, u = one.words.ops, one.heads.learned.u
    met = ops.tanh(ops.expand_dims(one.q, 3) + ops.expand_dims(one.k, 2))
    sizes = (u.shape[0], None, None)
    layer = ("EinsumDense", f"{one.name}_direction", met, [u], "bhqkd,hd->bhqk", sizes)
    return one.softmax(one.biased(one.words.put(*layer)))


def _uniform(one: Scored) -> Any:
    """The mask alone decides."""
    return one.softmax(one.words.ops.zeros_like(one.scores))


def _linear(one: Scored) -> Any:
    """φ(q)·φ(k)·exp(bias) over their sum, with φ(x) = elu(x) + 1."""
    ops = one.words.ops
    product = ops.matmul(ops.elu(one.q) + 1, ops.transpose(ops.elu(one.k) + 1, (0, 1, 3, 2)))
    if one.bias is not None:
        bias = one.filled(one.bias + ops.zeros_like(product))
        product = product * ops.exp(bias - ops.max(bias, axis=-1, keepdims=True))
    product = one.filled(product, 0.0)
    total = ops.sum(product, axis=-1, keepdims=True)
    enough = total > np.finfo(np.float32).tiny ** 0.5
    return ops.where(enough, product / ops.where(enough, total, 1.0), 0.0)


def _topk(one: Scored) -> Any:
    """The softmax over the k best; of those that equal the k-th, as many as there is room for."""
    ops, count = one.words.ops, one.heads.mechanism.k
    scores = one.filled(one.scores)
    longer = ops.pad(scores, [[0, 0], [0, 0], [0, 0], [0, count]], constant_values=LOWEST)
    last = ops.top_k(longer, count)[0][..., -1:]  # of a row that has k at least
    equal = ops.cast(ops.equal(scores, last), "float32")
    number = ops.cumsum(equal, axis=-1) * equal  # of equals, counted from 1
    fits = ops.logical_and(number >= 1, number <= count - _count(ops, scores > last))
    chosen = ops.logical_and(ops.logical_or(scores > last, fits), scores > LOWEST)
    weights = ops.softmax(ops.where(chosen, scores, LOWEST))
    return ops.where(chosen, weights, 0.0)


def _hard(one: Scored) -> Any:
    """1 for the best key, the first of equals."""
    ops = one.words.ops
    scores = one.filled(one.scores)
    best = ops.cast(ops.equal(scores, ops.max(scores, axis=-1, keepdims=True)), "float32")
    return one.filled(ops.where(ops.equal(ops.cumsum(best, axis=-1), 1.0), best, 0.0), 0.0)


def _projected(project: Callable[[Any, Any], Any]) -> Callable[[Scored], Any]:
    """Weights by sparsemax or its kin: what is two or more below the best gets nothing."""

    def weights(one: Scored) -> Any:
        ops = one.words.ops
        scores = one.scores
        best = ops.max(one.filled(scores), axis=-1, keepdims=True)
        near = one.filled(ops.maximum(scores - best, -4.0), -4.0)
        return one.filled(project(ops, near), 0.0)

    return weights


def _ranked(ops: Any, scores: Any) -> tuple[Any, Any]:
    """The scores of every row from the largest on, and their ranks."""
    return -ops.sort(-scores, axis=-1), ops.cumsum(ops.ones_like(scores), axis=-1)


def _at_rank(ops: Any, ordered: Any, rank: Any, count: Any) -> Any:
    return ops.sum(ops.where(ops.equal(rank, count), ordered, 0.0), axis=-1, keepdims=True)


def _count(ops: Any, condition: Any) -> Any:
    return ops.sum(ops.cast(condition, "float32"), axis=-1, keepdims=True)


def _sparsemax(ops: Any, scores: Any) -> Any:
    """max(score − level, 0), with the one level at which a row sums to 1."""
    ordered, rank = _ranked(ops, scores)
    above = 1 + rank * ordered > ops.cumsum(ordered, axis=-1)
    chosen = scores >= _at_rank(ops, ordered, rank, _count(ops, above))
    total = ops.sum(ops.where(chosen, scores, 0.0), axis=-1, keepdims=True)
    return ops.maximum(scores - (total - 1) / _count(ops, chosen), 0.0)


def _entmax15(ops: Any, scores: Any) -> Any:
    """max(score / 2 − level, 0)², with the one level at which a row sums to 1."""
    half = scores / 2
    ordered, rank = _ranked(ops, half)
    mean = ops.cumsum(ordered, axis=-1) / rank
    square = ops.cumsum(ordered * ordered, axis=-1) / rank
    levels = mean - ops.sqrt(ops.maximum(1 / rank - square + mean * mean, 0.0))
    chosen = half >= _at_rank(ops, ordered, rank, _count(ops, levels <= ordered))
    count = _count(ops, chosen)
    mean = ops.sum(ops.where(chosen, half, 0.0), axis=-1, keepdims=True) / count
    deviation = ops.where(chosen, half - mean, 0.0)
    spread = ops.sum(deviation * deviation, axis=-1, keepdims=True)
    level = mean - ops.sqrt(ops.maximum((1 - spread) / count, 0.0))
    return ops.square(ops.maximum(half - level, 0.0))


WEIGHTS: dict[type, Callable[[Scored], Any]] = {
    Self: _softmax,
    Cross: _softmax,
    Causal: _softmax,
    Localized: _softmax,
    Sparse: _softmax,
    BoundaryAware: _boundary_aware,
    Additive: _additive,
    Uniform: _uniform,
    Linear: _linear,
    Topk: _topk,
    Hard: _hard,
    Sparsemax: _projected(_sparsemax),
    Entmax15: _projected(_entmax15),
}
"""(B, H, Q, K) by the class of the mechanism: exactly that class, not one that derives from it."""
