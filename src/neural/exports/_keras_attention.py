"""Export of attention to Keras: Keras' own attention layer if possible, else `keras.ops`.

`module` is our MultiHeadAttentionModule: projections around a mechanism (neural/nn/attention),
whose method `weights` computes the attention weights, and an optional positional encoding
`position` (neural/nn/positions). Keras' layer covers full, causal and windowed attention. Other
mechanisms, and positional encodings inside attention, are composed of operations; their projections
are Keras layers, so that the exported model can be trained. `builder` adds layers to the Keras
model. Scores are the scaled products of queries and keys, before the softmax.

Axes: B batch, H heads, Q queries, K keys, T time, D head width, E model width.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import log
from typing import TYPE_CHECKING, Any

import numpy as np

from neural.core.names import to_snake_case
from neural.nn.attention.additive import Additive
from neural.nn.attention.boundary_aware import BoundaryAware
from neural.nn.attention.causal import Causal
from neural.nn.attention.cross import Cross
from neural.nn.attention.entmax15 import Entmax15
from neural.nn.attention.hard import Hard
from neural.nn.attention.linear import Linear
from neural.nn.attention.localized import Localized
from neural.nn.attention.self import Self
from neural.nn.attention.sparse import Sparse
from neural.nn.attention.sparsemax import Sparsemax
from neural.nn.attention.topk import Topk
from neural.nn.attention.uniform import Uniform
from neural.nn.multi_head_attention import QK_NORM_EPSILON
from neural.nn.position import AttentionPositions
from neural.nn.positions.alibi import AlibiPositions
from neural.nn.positions.relative import RelativePositions
from neural.nn.positions.rotary import RotaryPositions

if TYPE_CHECKING:
    from neural.exports._keras_layers import KerasBuilder
    from neural.nn.multi_head_attention import MultiHeadAttentionModule

LOWEST_VALUE = -3e38
"""Replaces masked values before a maximum or softmax; finite, because a .keras file is JSON."""
KERAS_MECHANISMS = (Self, Cross, Causal, Localized)
"""Mechanisms that Keras' own attention layers compute, given a mask."""
KNOWN_POSITIONS = (RotaryPositions, AlibiPositions, RelativePositions)
"""Positional encodings inside attention that can be exported."""
CLAMPED_SCORE = -4.0
"""Difference to the best score of a row at which scores are clamped before sparsemax or entmax.

Both give weight 0 to every difference of -2 or less.
"""


def list_unsupported_attention(module: MultiHeadAttentionModule) -> list[str]:
    """Properties of an attention module that cannot be exported to Keras, as message texts."""
    reasons = []
    if type(module.mechanism) not in WEIGHT_FUNCTIONS:
        name = to_snake_case(type(module.mechanism).__name__)
        reasons.append(f'attention="{name}": the mechanism of another package')
    if isinstance(module.mechanism, Sparse) and module.mechanism.random_blocks:
        reasons.append("random_blocks: they are sampled with operations on 64-bit integers")
    if module.position is not None and not (
        _has_no_effect(module.position) or _is_known(module.position)
    ):
        name = to_snake_case(type(module.position).__name__.removesuffix("Positions"))
        reasons.append(f'positional="{name}": the positions of another package')
    return reasons


def _has_no_effect(position: AttentionPositions) -> bool:
    """Whether a positional encoding computes nothing: `positional="none"` in a program."""
    overridden = {
        name
        for cls in type(position).__mro__
        if issubclass(cls, AttentionPositions) and cls is not AttentionPositions
        for name in vars(cls)
    }
    return not list(position.parameters()) and not {"rotate", "bias", "key_bias"} & overridden


def _is_known(position: AttentionPositions) -> bool:
    """Whether the class is in KNOWN_POSITIONS. Subclasses are not: they may compute otherwise."""
    return declared_class(position) in KNOWN_POSITIONS


def declared_class(module: Any) -> type:
    """The class of a module as its file defines it.

    torch is imported lazily (neural.nn.lazy_torch): the classes of our modules do not inherit from
    nn.Module. `type(module)` is a class of the same name, created at run time, that inherits from
    the class in the file and from nn.Module.
    """
    actual, base = type(module).__mro__[:2]
    is_derived = (actual.__module__, actual.__qualname__) == (base.__module__, base.__qualname__)
    return base if is_derived else actual


def build_attention(
    builder: KerasBuilder,
    x: Any,
    module: MultiHeadAttentionModule,
    name: str,
    *,
    mask: Any = None,
    memory: Any = None,
) -> Any:
    """The output of attention from `x` (B, Q, E) to itself or to `memory` (B, K, E).

    `mask` (B, K) is True for keys that are not padding. `name` prefixes the Keras layers.
    """
    no_positions = module.position is None or _has_no_effect(module.position)
    if type(module.mechanism) in KERAS_MECHANISMS and no_positions and not module.qk_norm:
        return _build_keras_layer(builder, x, module, name, mask, memory)
    return _build_from_operations(builder, x, module, name, mask, memory)


def _build_keras_layer(
    builder: KerasBuilder,
    x: Any,
    module: MultiHeadAttentionModule,
    name: str,
    mask: Any,
    memory: Any,
) -> Any:
    """Attention as one Keras layer, whose projections have the shape (E, H, D)."""
    source = x if memory is None else memory
    width = module.head_width
    num_heads = module.query.out_features // width
    num_kv_heads = num_heads // module.groups
    masks = [] if mask is None else [builder.ops.expand_dims(mask, 1)]
    if isinstance(module.mechanism, Localized):
        masks.append(_window_mask(builder, x, source, module.mechanism.window // 2))
    is_causal = module.causal or isinstance(module.mechanism, Causal)
    call_arguments = {"value": source, "key": source, "use_causal_mask": is_causal}
    if masks:
        call_arguments["attention_mask"] = _combine_masks(builder, masks)
    weights = []
    projections = (
        (module.query, num_heads),
        (module.key, num_kv_heads),
        (module.value, num_kv_heads),
    )
    for linear, count in projections:
        weights.append(linear.weight.T.reshape(-1, count, width))
        weights += [] if linear.bias is None else [linear.bias.reshape(count, width)]
    weights.append(module.output.weight.T.reshape(num_heads, width, -1))
    weights += [] if module.output.bias is None else [module.output.bias]
    layer_class, sizes = "MultiHeadAttention", (num_heads, width)
    if module.groups > 1:
        layer_class, sizes = "GroupQueryAttention", (width, num_heads, num_kv_heads)
    y = builder.add_layer(
        layer_class,
        f"{name}_heads",
        x,
        *sizes,
        weights=weights,
        call_arguments=call_arguments,
        use_bias=module.query.bias is not None,
        dropout=module.dropout,
    )
    if mask is None:
        return y
    # If all keys are masked, Keras averages over them; our module outputs zeros plus the bias.
    bias = 0.0 if module.output.bias is None else module.output.bias.detach().numpy()
    has_key = builder.ops.expand_dims(builder.ops.any(mask, axis=1, keepdims=True), -1)
    return builder.ops.where(has_key, y, bias)


@dataclass(frozen=True)
class AttentionScores:
    """Queries and keys (B, H, T, D) of an attention; `scores` (B, H, Q, K) are their products."""

    builder: KerasBuilder
    module: Any
    """The MultiHeadAttentionModule."""
    name: str
    """Prefix of the Keras layers."""
    q: Any
    k: Any
    source: Any
    """The sequence of the keys, (B, K, E)."""
    bias: Any
    """Added to the scores; or None."""
    mask: Any
    """True where a query may attend to a key; or None."""

    @property
    def scores(self) -> Any:
        """q·kᵀ / √D plus the bias."""
        keys = self.builder.ops.transpose(self.k, (0, 1, 3, 2))
        return self.add_bias(self.builder.ops.matmul(self.q, keys) / self.module.head_width**0.5)

    def add_bias(self, scores: Any) -> Any:
        """Add the bias, if there is one."""
        return scores if self.bias is None else scores + self.bias

    def fill_masked(self, scores: Any, value: float = LOWEST_VALUE) -> Any:
        """Scores with `value` where the mask is False."""
        return scores if self.mask is None else self.builder.ops.where(self.mask, scores, value)

    def softmax(self, scores: Any) -> Any:
        """Softmax over the keys that are not masked; zeros if all are masked."""
        return self.fill_masked(self.builder.ops.softmax(self.fill_masked(scores)), 0.0)


def _build_from_operations(
    builder: KerasBuilder,
    x: Any,
    module: MultiHeadAttentionModule,
    name: str,
    mask: Any,
    memory: Any,
) -> Any:
    """Attention with projections as layers and weights as operations."""
    ops, source = builder.ops, x if memory is None else memory
    q = _project_heads(builder, x, module.query, module.head_width, f"{name}_query")
    k = _project_heads(builder, source, module.key, module.head_width, f"{name}_key")
    v = _project_heads(builder, source, module.value, module.head_width, f"{name}_value")
    if module.qk_norm:
        q, k = (
            tensor * ops.rsqrt(ops.mean(tensor * tensor, -1, keepdims=True) + QK_NORM_EPSILON)
            for tensor in (q, k)
        )
    if module.position is not None and _is_known(module.position):
        q, k = _rotate(builder, module, q, x), _rotate(builder, module, k, source)
    if module.groups > 1:
        k, v = ops.repeat(k, module.groups, axis=1), ops.repeat(v, module.groups, axis=1)
    masks = [] if mask is None else [ops.expand_dims(mask, 1)]
    if module.causal or isinstance(module.mechanism, Causal):
        masks.append(_key_offsets(builder, x, source) <= 0)
    if isinstance(module.mechanism, Localized):
        masks.append(_window_mask(builder, x, source, module.mechanism.window // 2))
    if isinstance(module.mechanism, Sparse):
        masks.append(_sparse_mask(builder, module.mechanism, x, source))
    full_mask = ops.expand_dims(_combine_masks(builder, masks), 1) if masks else None
    bias = _position_bias(builder, module, name, x, source)
    scores = AttentionScores(builder, module, name, q, k, source, bias, full_mask)
    weights = WEIGHT_FUNCTIONS[type(module.mechanism)](scores)
    if module.dropout:
        weights = builder.add_layer("Dropout", f"{name}_dropout", weights, module.dropout)
    attended = ops.transpose(ops.matmul(weights, v), (0, 2, 1, 3))
    joined = builder.add_layer(
        "Reshape", f"{name}_joined", attended, (-1, module.output.in_features)
    )
    return builder.dense(joined, module.output, f"{name}_output")


def _project_heads(builder: KerasBuilder, x: Any, linear: Any, width: int, name: str) -> Any:
    """Project and split into heads, (B, T, E) → (B, H, T, D)."""
    num_heads = linear.out_features // width
    projected = builder.add_layer(
        "Reshape", f"{name}_split", builder.dense(x, linear, name), (-1, num_heads, width)
    )
    return builder.ops.transpose(projected, (0, 2, 1, 3))


def _combine_masks(builder: KerasBuilder, masks: list[Any]) -> Any:
    """True where all masks are True."""
    combined = masks[0]
    for mask in masks[1:]:
        combined = builder.ops.logical_and(combined, mask)
    return combined


def _key_offsets(builder: KerasBuilder, x: Any, source: Any) -> Any:
    """Key position minus query position, (B, Q, K); queries are in `x`, keys in `source`."""
    queries, keys = builder.position_indices(x), builder.position_indices(source)
    return builder.ops.expand_dims(keys, 1) - builder.ops.expand_dims(queries, 2)


def _window_mask(builder: KerasBuilder, x: Any, source: Any, radius: int) -> Any:
    """True where a key is at most `radius` positions from the query, (B, Q, K)."""
    return builder.ops.abs(_key_offsets(builder, x, source)) <= radius


def _sparse_mask(builder: KerasBuilder, mechanism: Sparse, x: Any, source: Any) -> Any:
    """Which query may attend to which key in sparse attention, (B, Q, K)."""
    ops = builder.ops
    query = ops.expand_dims(builder.position_indices(x), 2)
    key = ops.expand_dims(builder.position_indices(source), 1)
    mask = ops.abs(key - query) <= mechanism.window // 2
    mask = ops.logical_or(mask, key < mechanism.global_tokens)
    mask = ops.logical_or(mask, query < mechanism.global_tokens)
    if mechanism.stride is not None:
        mask = ops.logical_or(mask, ops.equal(ops.mod(key, mechanism.stride), 0))
    return mask


def _rotate(builder: KerasBuilder, module: Any, x: Any, sequence: Any) -> Any:
    """Rotate queries or keys `x` (B, H, T, D) if the encoding is rotary, else do nothing.

    `sequence` (B, T, E) is what they are projected from; it gives the length.
    """
    if not isinstance(module.position, RotaryPositions):
        return x
    ops, half = builder.ops, module.head_width // 2
    frequencies = module.position.base ** (-np.arange(half, dtype=np.float32) / half)
    time = ops.expand_dims(ops.expand_dims(builder.position_indices(sequence), 1), -1)
    angles = time * frequencies.astype(np.float32)
    cos, sin = ops.cos(angles), ops.sin(angles)
    left, right = x[..., :half], x[..., half:]
    return ops.concatenate([left * cos - right * sin, left * sin + right * cos], axis=-1)


def _position_bias(builder: KerasBuilder, module: Any, name: str, x: Any, source: Any) -> Any:
    """Bias that the positional encoding adds to the scores, (B, H, Q, K), or None."""
    ops, position = builder.ops, module.position
    if isinstance(position, AlibiPositions):
        head_numbers = np.arange(1, position.heads + 1, dtype=np.float32)
        slopes = np.exp2(-8 * head_numbers / position.heads).astype(np.float32)[None, :, None, None]
        return -ops.expand_dims(ops.abs(_key_offsets(builder, x, source)), 1) * slopes
    if not isinstance(position, RelativePositions):
        return None
    behind = -_key_offsets(builder, x, source)  # how far the key is behind the query
    buckets = position.buckets if position.causal else position.buckets // 2
    distance = ops.maximum(behind, 0.0) if position.causal else ops.abs(behind)
    # Half of the buckets hold one distance each, the others grow logarithmically (T5).
    exact = max(1, buckets // 2)
    log_range = log(max(position.max_distance / exact, 2.0))
    growth = ops.log(ops.maximum(distance, 1.0) / exact) / log_range * (buckets - exact)
    far_bucket = ops.minimum(ops.floor(exact + growth), float(buckets - 1))
    bucket = ops.where(distance < exact, distance, far_bucket)
    if not position.causal:
        bucket = bucket + ops.where(behind < 0, float(buckets), 0.0)
    table = position.table.weight
    bias = builder.add_layer(
        "Embedding", f"{name}_distance", ops.cast(bucket, "int32"), *table.shape, weights=[table]
    )
    return ops.transpose(bias, (0, 3, 1, 2))


# One function per mechanism: attention weights (B, H, Q, K) from queries, keys and scores.


def _softmax(attention: AttentionScores) -> Any:
    return attention.softmax(attention.scores)


def _boundary_aware(attention: AttentionScores) -> Any:
    """Softmax with a learned boundary probability as bias, half from the query, half from the key.

    The query's half is the same for all keys and cancels in the softmax.
    """
    builder, scorer = attention.builder, attention.module.learned
    up = builder.ops.relu(
        builder.dense(attention.source, scorer.up, f"{attention.name}_boundary_up")
    )
    logits = builder.dense(up, scorer.down, f"{attention.name}_boundary_down")
    key_half = builder.ops.sigmoid(logits / scorer.temperature) / 2
    return attention.softmax(
        attention.scores + builder.ops.expand_dims(builder.ops.transpose(key_half, (0, 2, 1)), 1)
    )


def _additive(attention: AttentionScores) -> Any:
    """softmax(u · tanh(q + k)), with a learned vector u for each head."""
    ops, u = attention.builder.ops, attention.module.learned.u
    hidden = ops.tanh(ops.expand_dims(attention.q, 3) + ops.expand_dims(attention.k, 2))
    sizes = (u.shape[0], None, None)
    scores = attention.builder.add_layer(
        "EinsumDense", f"{attention.name}_direction", hidden, "bhqkd,hd->bhqk", sizes, weights=[u]
    )
    return attention.softmax(attention.add_bias(scores))


def _uniform(attention: AttentionScores) -> Any:
    """Equal weights for all keys that are not masked."""
    return attention.softmax(attention.builder.ops.zeros_like(attention.scores))


def _linear(attention: AttentionScores) -> Any:
    """φ(q)·φ(k)·exp(bias) over their sum, with φ(x) = elu(x) + 1."""
    ops = attention.builder.ops
    product = ops.matmul(
        ops.elu(attention.q) + 1, ops.transpose(ops.elu(attention.k) + 1, (0, 1, 3, 2))
    )
    if attention.bias is not None:
        bias = attention.fill_masked(attention.bias + ops.zeros_like(product))
        product = product * ops.exp(bias - ops.max(bias, axis=-1, keepdims=True))
    product = attention.fill_masked(product, 0.0)
    total = ops.sum(product, axis=-1, keepdims=True)
    # Rows whose keys are all masked sum to 0.
    is_positive = total > np.finfo(np.float32).tiny ** 0.5
    return ops.where(is_positive, product / ops.where(is_positive, total, 1.0), 0.0)


def _topk(attention: AttentionScores) -> Any:
    """Softmax over the k best keys; of keys that tie with the k-th, the first ones."""
    ops, count = attention.builder.ops, attention.module.mechanism.k
    scores = attention.fill_masked(attention.scores)
    # Padded, so that every row has at least k scores.
    padded = ops.pad(scores, [[0, 0], [0, 0], [0, 0], [0, count]], constant_values=LOWEST_VALUE)
    threshold = ops.top_k(padded, count)[0][..., -1:]
    ties = ops.cast(ops.equal(scores, threshold), "float32")
    tie_number = ops.cumsum(ties, axis=-1) * ties  # counted from 1; 0 elsewhere
    free_slots = count - _count_true(ops, scores > threshold)
    chosen_ties = ops.logical_and(tie_number >= 1, tie_number <= free_slots)
    chosen = ops.logical_or(scores > threshold, chosen_ties)
    chosen = ops.logical_and(chosen, scores > LOWEST_VALUE)
    weights = ops.softmax(ops.where(chosen, scores, LOWEST_VALUE))
    return ops.where(chosen, weights, 0.0)


def _hard(attention: AttentionScores) -> Any:
    """1 for the best key, the first one if several tie."""
    ops = attention.builder.ops
    scores = attention.fill_masked(attention.scores)
    best = ops.cast(ops.equal(scores, ops.max(scores, axis=-1, keepdims=True)), "float32")
    return attention.fill_masked(
        ops.where(ops.equal(ops.cumsum(best, axis=-1), 1.0), best, 0.0), 0.0
    )


def _sparse_weights(project: Callable[[Any, Any], Any]) -> Callable[[AttentionScores], Any]:
    """Function that computes weights by `project(ops, scores)`, which is sparsemax or entmax.

    Masked scores become CLAMPED_SCORE below the best score, where both functions give weight 0.
    """

    def compute_weights(attention: AttentionScores) -> Any:
        ops = attention.builder.ops
        scores = attention.scores
        best = ops.max(attention.fill_masked(scores), axis=-1, keepdims=True)
        clamped = attention.fill_masked(ops.maximum(scores - best, CLAMPED_SCORE), CLAMPED_SCORE)
        return attention.fill_masked(project(ops, clamped), 0.0)

    return compute_weights


def _sort_with_ranks(ops: Any, scores: Any) -> tuple[Any, Any]:
    """The scores of every row in descending order, and their ranks from 1."""
    return -ops.sort(-scores, axis=-1), ops.cumsum(ops.ones_like(scores), axis=-1)


def _score_at_rank(ops: Any, ordered: Any, rank: Any, count: Any) -> Any:
    """The score of rank `count` in every row."""
    return ops.sum(ops.where(ops.equal(rank, count), ordered, 0.0), axis=-1, keepdims=True)


def _count_true(ops: Any, condition: Any) -> Any:
    """Number of True values in every row."""
    return ops.sum(ops.cast(condition, "float32"), axis=-1, keepdims=True)


def _sparsemax(ops: Any, scores: Any) -> Any:
    """max(score − threshold, 0), with the threshold at which a row sums to 1."""
    ordered, rank = _sort_with_ranks(ops, scores)
    in_support = 1 + rank * ordered > ops.cumsum(ordered, axis=-1)
    chosen = scores >= _score_at_rank(ops, ordered, rank, _count_true(ops, in_support))
    total = ops.sum(ops.where(chosen, scores, 0.0), axis=-1, keepdims=True)
    return ops.maximum(scores - (total - 1) / _count_true(ops, chosen), 0.0)


def _entmax15(ops: Any, scores: Any) -> Any:
    """max(score / 2 − threshold, 0)², with the threshold at which a row sums to 1."""
    half = scores / 2
    ordered, rank = _sort_with_ranks(ops, half)
    mean = ops.cumsum(ordered, axis=-1) / rank
    square = ops.cumsum(ordered * ordered, axis=-1) / rank
    thresholds = mean - ops.sqrt(ops.maximum(1 / rank - square + mean * mean, 0.0))
    chosen = half >= _score_at_rank(ops, ordered, rank, _count_true(ops, thresholds <= ordered))
    count = _count_true(ops, chosen)
    mean = ops.sum(ops.where(chosen, half, 0.0), axis=-1, keepdims=True) / count
    deviation = ops.where(chosen, half - mean, 0.0)
    squares = ops.sum(deviation * deviation, axis=-1, keepdims=True)
    threshold = mean - ops.sqrt(ops.maximum((1 - squares) / count, 0.0))
    return ops.square(ops.maximum(half - threshold, 0.0))


WEIGHT_FUNCTIONS: dict[type, Callable[[AttentionScores], Any]] = {
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
    Sparsemax: _sparse_weights(_sparsemax),
    Entmax15: _sparse_weights(_entmax15),
}
"""Function that computes the weights, by the class of the mechanism, without subclasses."""
