# ruff: noqa: ANN001, ANN201, ANN202 (numba reads no annotations)
"""Compiled loops over the rows of attention: score four rows, measure them, discard them.

A row is the distribution of one query over the keys: its scores, or after the softmax its weights.
No Q×K matrix is stored. Everything is 32-bit: positions come as floats, because a conversion from
64-bit integers would keep the compiler from vectorizing. The score of a hidden key (masked or
padding) is below MIN_VISIBLE_SCORE. Its weight is exactly 0, while that of a visible key is always
above 0. Statistics without a value are not written: the caller fills the output with NaN.

Arguments of the three entry points:
  q           queries times the scale of the scores, padded with zero rows to a multiple of four
  panels      keys in panels of 24, (panel, D, 24): a copy in the order in which they are read
  key_bias    added to the scores of a key
  pair_bias   added to the score of a pair (query, key); has no rows if there is no such bias
  first_keys  for every row, the first key of its sequence, where an attention sink would be; −1
              if unknown
  layout      number of keys; number of leading keys that are positions; key index of the first row;
              number of keys before and after its own that a row sees; whether a row sees its
              first key (`sink`); whether queries and keys are positions of one sequence (`shared`);
              number of threads
  out         result, in the order of the names in ROW_, LAYER_ or PAIR_STATISTICS

Names in the loops: `r` is the first of four rows, `i` the number of a row among them, `j` a key,
`s` the scores of one row (after the softmax its weights, not yet divided by their sum), `low` and
`high` the first key it sees and the one after the last, `left` the first key of the panel that
contains `low`.

Of n threads, each takes every n-th block of rows and synchronizes only at the end: on a busy
machine, threads that synchronize after every few rows mostly wait for each other.

Keys after the positions (learned sinks) are part of every distribution: sums, entropies, largest
weights, comparisons. They have no position: distances count them as 0, mean positions skip them.
"""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from neural.capture import attention_call

float32 = np.float32

HIDDEN_SCORE = float32(attention_call.HIDDEN_SCORE)
"""Score of a hidden key."""
MIN_VISIBLE_SCORE = float32(attention_call.MIN_VISIBLE_SCORE)
"""Lower bound of the scores of visible keys."""

LN_2 = float32(math.log(2))
MIN_EXP_INPUT = float32(-87)
"""exp of less is not a normal 32-bit float; `exp` clamps its input here."""
ROWS_PER_TILE, KEYS_PER_PANEL = 4, 24
"""Rows and keys of one call of `score_panel`. 4 × 3 vectors of 8 sums, 3 of keys and one of a query
fill the 16 vector registers of AVX2. The loops below write 4 for ROWS_PER_TILE."""
INT32, FLOAT32, FLOAT32X8 = ir.IntType(32), ir.FloatType(), ir.VectorType(ir.FloatType(), 8)
ROW_STATISTICS = (
    "entropy",  # in nats
    "visible",  # number of visible keys
    "logit",  # largest score
    "largest",  # largest weight
    "first",  # weight of the first key of the sequence
    "previous",  # weight of the key before the query's own
    "diagonal",  # weight of the query's own key
    "induction",  # weight of the key of induction (see `measure_head_rows`)
    "distance",  # mean distance between query and key
    "position",  # mean position of the keys
    "spread",  # standard deviation of the position
    "within",  # smallest distance that contains the share `mass_share` of the weight
    "extra",  # weight of the keys that are not positions
    "from_first",  # distance of the first key
    "sees_first",  # 1 if the first key is visible, else 0
)
"""Statistics of a row of one head, in the order of `out`."""
(
    ENTROPY,
    VISIBLE_KEYS,
    LOGIT,
    LARGEST,
    FIRST,
    PREVIOUS,
    DIAGONAL,
    INDUCTION,
    DISTANCE,
    POSITION,
    SPREAD,
    WITHIN,
    EXTRA,
    FROM_FIRST,
    SEES_FIRST,
) = range(len(ROW_STATISTICS))
"""Indices of the row statistics in `out`."""
LAYER_STATISTICS = ("diversity", "variance")
"""Jensen–Shannon divergence of all heads (nats), and variance of a weight over the heads."""
PAIR_STATISTICS = ("js", "kl", "cosine", "centred")
"""Jensen–Shannon divergence (bits), Kullback–Leibler divergence (nats), cosine of two rows, and
cosine after subtracting the uniform row."""

_njit = numba.njit(fastmath=True)
_parallel_njit = numba.njit(parallel=True, fastmath=True, cache=True)

inline_njit = numba.njit(fastmath=True, forceinline=True)


@inline_njit
def _first_visible_key(query, before):
    """Key index of the first key in the window of a query; `before`: as in `layout`."""
    return max(0, query - before)


@inline_njit
def _end_visible_key(query, after, keys):
    """Key index after the last key in the window of a query; `keys`: number of keys."""
    return max(0, min(keys, query + after + 1))


@inline_njit
def _panel_start(key):
    """Index of the first key in the panel of a key."""
    return key // KEYS_PER_PANEL * KEYS_PER_PANEL


@_njit
def _score_rows(q, panels, key_bias, pair_bias, r, low, high, scores):
    """Write scores of rows r to r + 3 and keys low to high; `scores` starts at a panel boundary."""
    left = _panel_start(low)
    for a in range(left, high, KEYS_PER_PANEL):
        panel, column = a // KEYS_PER_PANEL, a - left
        score_panel(q, r, panels, panel, key_bias, scores, column)  # type: ignore[missing-argument]
    for i in range(4):
        if r + i < pair_bias.shape[0]:
            s, bias = scores[i, low - left :], pair_bias[r + i, low : max(high, low)]
            for j in range(bias.size):
                s[j] += bias[j]


@_njit
def _find_first_visible(s, sink, first_key):
    """Index of the first visible key of a row, or the row's length if there is none.

    If `sink` is false, hides the key `first_key` first. It is an index into `s`; outside of the row
    it has no effect.
    """
    if not sink and 0 <= first_key < s.size:
        s[first_key] = HIDDEN_SCORE
    first = 0
    while first < s.size and s[first] < MIN_VISIBLE_SCORE:
        first += 1
    return first


@_njit
def _softmax_in_place(s):
    """Replace scores by exp(score − largest), 0 if hidden.

    Returns the largest score, the sum of the results, the entropy, and the number of visible keys.
    """
    largest = HIDDEN_SCORE
    for j in range(s.size):
        largest = max(largest, s[j])
    total, mean, visible = float32(0), float32(0), float32(0)
    for j in range(s.size):
        shifted = max(s[j] - largest, MIN_EXP_INPUT)
        is_visible = float32(1) if s[j] > MIN_VISIBLE_SCORE else float32(0)
        s[j] = exp(shifted) * is_visible
        total += s[j]
        mean += s[j] * shifted
        visible += is_visible
    return largest, total, math.log(total) - mean / total, visible


@_njit
def _sum_range(e, low, high):
    """Sum of e[low:high], with both ends clipped to the array."""
    total = float32(0)
    span = e[max(low, 0) : max(min(high, e.size), max(low, 0))]
    for j in range(span.size):
        total += span[j]
    return total


@_njit
def _distance_containing(e, center, target_mass):
    """Smallest distance from index `center` within which the weights `e` sum to `target_mass`.

    The search adds 64 distances at a time, and in the block that reaches the target one by one.
    """
    mass, distance, step = float32(0), 0, 64
    max_distance = max(center, e.size - 1 - center)
    while distance < max_distance:
        left = _sum_range(e, center - distance - step + 1, center - distance + 1)
        right = _sum_range(e, center + max(distance, 1), center + distance + step)
        block_mass = left + right
        if mass + block_mass >= target_mass:
            if step == 1:
                break
            step = 1  # the target lies in this block
        else:
            mass += block_mass
            distance += step
    return min(distance, max_distance)


@_parallel_njit
def measure_head_rows(
    q,
    panels,
    key_bias,
    pair_bias,
    first_keys,
    layout,
    positions,
    targets,
    needs_distance,
    needs_spread,
    mass_share,
    out,
):
    """Write ROW_STATISTICS of one head to `out` (statistic, row).

    `positions`: 0, 1, 2 … as floats. `targets`: for every row, the key of induction (the one after
    the previous occurrence of the query's token), or −1. The flags enable statistics that take
    another pass; `mass_share` 0 disables "within".
    """
    keys, position_count, start, before, after, sink, shared, threads = layout
    scratch = np.empty((threads, 4, key_bias.size), float32)
    for thread in numba.prange(threads):
        for r in range(4 * thread, q.shape[0], 4 * threads):
            low = _first_visible_key(start + r, before)
            high = _end_visible_key(start + r + 3, after, keys)
            scores = scratch[thread]
            left = _panel_start(low)
            _score_rows(q, panels, key_bias, pair_bias, r, low, high, scores)
            for i in range(min(4, out.shape[1] - r)):
                query = start + r + i
                low = _first_visible_key(query, before)
                high = _end_visible_key(query, after, keys)
                s = scores[i, low - left : max(high, low) - left]
                first = _find_first_visible(s, sink, first_keys[r + i] - low)
                if first < s.size:
                    low += first
                    size = max(0, min(s.size - first, position_count - low))
                    flags = (needs_distance, needs_spread, mass_share, shared)
                    special_keys = (first_keys[r + i], targets[r + i])
                    _measure_row(
                        s[first:], size, low, query, positions, special_keys, flags, out[:, r + i]
                    )


@_njit
def _measure_row(s, size, low, query, positions, special_keys, flags, out):
    """Write the statistics of one row to `out`, in the order of ROW_STATISTICS.

    `s`: its scores from key `low` on, of which the first `size` are positions. `query`: the key
    index of the row. `special_keys`: its first key and its key of induction.
    """
    needs_distance, needs_spread, mass_share, shared = flags
    first_key, target = special_keys
    largest, total, entropy, visible = _softmax_in_place(s)
    out[ENTROPY], out[VISIBLE_KEYS], out[LOGIT] = entropy, visible, largest
    out[LARGEST] = 1 / total  # the largest weight before the division is exp(0)
    extra = _sum_range(s, size, s.size)  # keys that are not positions
    out[EXTRA] = extra / total
    position_total = total if size == s.size else _sum_range(s, 0, size)
    s = s[:size]
    # a row that sees a single key gives it all weight, which says nothing about the first key
    if visible > 1 and first_key >= 0:
        sees_first_key = low <= first_key < low + size and s[first_key - low] > 0
        out[FIRST] = s[first_key - low] / total if sees_first_key else float32(0)
        out[SEES_FIRST] = float32(1) if sees_first_key else float32(0)
    if shared:
        # meaningless if there is no first key: readers use it only together with "first"
        out[FROM_FIRST] = abs(float32(query) - float32(first_key))
        for statistic, key in ((PREVIOUS, query - 1), (DIAGONAL, query), (INDUCTION, target)):
            if key >= low and key - low < size and s[key - low] > 0:
                out[statistic] = s[key - low] / total
    if needs_distance:
        position, own = positions[low : low + size], float32(query)
        distance, shift = float32(0), float32(0)
        for j in range(size):
            offset = position[j] - own
            distance += s[j] * abs(offset)
            shift += s[j] * offset
        if shared:
            out[DISTANCE] = distance / total
        if position_total > 0:
            shift /= position_total
            out[POSITION] = own + shift
            if needs_spread:
                square = float32(0)
                for j in range(size):
                    offset = position[j] - own - shift
                    square += s[j] * offset * offset
                out[SPREAD] = math.sqrt(square / position_total)
    if mass_share > 0 and shared:
        out[WITHIN] = _distance_containing(s, query - low, float32(mass_share) * total - extra)


@_parallel_njit
def measure_layer_rows(q, panels, key_bias, pair_bias, first_keys, layout, out):
    """Write LAYER_STATISTICS of all heads of one layer to `out` (statistic, row).

    The inputs have a leading axis of heads; consecutive heads may share the panels of a key head.
    """
    keys, _, start, before, after, sink, _, threads = layout
    head_count = q.shape[0]
    scratch = np.empty((threads, 8, key_bias.shape[1]), float32)
    for thread in numba.prange(threads):
        for r in range(4 * thread, q.shape[1], 4 * threads):
            block_low = _first_visible_key(start + r, before)
            right = _end_visible_key(start + r + 3, after, keys)
            left = _panel_start(block_low)
            scores, mean = scratch[thread, :4], scratch[thread, 4:]
            mean[:, : max(right - left, 0)] = 0
            entropies = np.zeros(4, float32)
            square = np.zeros(4, float32)
            has_keys = np.ones(4, np.bool_)
            for h in range(head_count):
                head_panels = panels[h * panels.shape[0] // head_count]
                _score_rows(
                    q[h], head_panels, key_bias[h], pair_bias[h], r, block_low, right, scores
                )
                for i in range(4):
                    low = _first_visible_key(start + r + i, before) - left
                    high = _end_visible_key(start + r + i, after, keys) - left
                    s, m = scores[i, low : max(high, low)], mean[i, low : max(high, low)]
                    first_key = first_keys[min(r + i, first_keys.size - 1)] - left - low
                    has_keys[i] = has_keys[i] and _find_first_visible(s, sink, first_key) < s.size
                    if has_keys[i]:
                        _, total, entropy, _ = _softmax_in_place(s)
                        entropies[i] += entropy
                        # running mean `m` and variance over the heads h (Welford, 1962)
                        scale, rate = 1 / total, float32(1) / float32(h + 1)
                        deviation = float32(0)
                        for j in range(s.size):
                            change = s[j] * scale - m[j]
                            m[j] += change * rate
                            deviation += change * (s[j] * scale - m[j])
                        square[i] += deviation
            for i in range(min(4, out.shape[1] - r)):
                if has_keys[i]:
                    m, mean_entropy, visible = mean[i, : right - left], float32(0), float32(0)
                    for j in range(m.size):
                        # 1e-37: `log` needs a normal 32-bit float
                        mean_entropy -= m[j] * log(max(m[j], float32(1e-37)))
                        visible += float32(1) if m[j] > 0 else float32(0)
                    diversity = mean_entropy - entropies[i] / float32(head_count)
                    # in the order of LAYER_STATISTICS
                    out[0, r + i] = max(diversity, float32(0))
                    out[1, r + i] = square[i] / float32(head_count) / visible


@_parallel_njit
def measure_pair_rows(
    q, panels, key_bias, pair_bias, first_keys, layout, other_q, other_panels, min_distance, out
):
    """Write PAIR_STATISTICS of two layers under one mask to `out` (statistic, row).

    `other_q`, `other_panels`: queries and keys of the second layer. "centred" is written only for
    rows whose distance from the uniform row, relative to its norm, is at least `min_distance`.
    """
    keys, _, start, before, after, sink, _, threads = layout
    scratch = np.empty((threads, 9, key_bias.size), float32)
    for thread in numba.prange(threads):
        for r in range(4 * thread, q.shape[0], 4 * threads):
            low = _first_visible_key(start + r, before)
            high = _end_visible_key(start + r + 3, after, keys)
            scores, others = scratch[thread, :4], scratch[thread, 4:8]
            difference = scratch[thread, 8]
            left = _panel_start(low)
            _score_rows(q, panels, key_bias, pair_bias, r, low, high, scores)
            _score_rows(other_q, other_panels, key_bias, pair_bias, r, low, high, others)
            for i in range(min(4, out.shape[1] - r)):
                low = _first_visible_key(start + r + i, before) - left
                high = _end_visible_key(start + r + i, after, keys) - left
                s, o = scores[i, low : max(high, low)], others[i, low : max(high, low)]
                first_key = first_keys[r + i] - left - low
                if (
                    _find_first_visible(s, sink, first_key) < s.size
                    and _find_first_visible(o, sink, first_key) < o.size
                ):
                    _measure_pair(s, o, difference, min_distance, out[:, r + i])


@_njit
def _measure_pair(s, o, difference, min_distance, out):
    """Write PAIR_STATISTICS of two rows of scores `s` and `o`; `difference` is scratch memory."""
    # before the softmax, because a weight may round to 0 where its log is finite
    for j in range(s.size):
        difference[j] = s[j] - o[j]
    largest_s, total_s, _, visible = _softmax_in_place(s)
    largest_o, total_o, _, _ = _softmax_in_place(o)
    scale_s, scale_o, uniform = 1 / total_s, 1 / total_o, 1 / visible
    offset = (largest_s - largest_o) + math.log(total_s) - math.log(total_o)
    js, kl, dot, norm_s, norm_o = float32(0), float32(0), float32(0), float32(0), float32(0)
    for j in range(s.size):
        p, q = s[j] * scale_s, o[j] * scale_o
        ratio = difference[j] - offset  # log p − log q
        kl += p * ratio
        # p log(p/m) + q log(q/m) = (p + q) L − min(p, q)·|ratio| with m the mean of p and q and
        # L = log(max(p, q)/m) = 2 atanh(w), by its power series
        w = abs(p - q) / max(p + q + float32(2) * max(p, q), float32(1e-37))
        x = w * w
        series = (
            (((float32(1 / 11) * x + float32(1 / 9)) * x + float32(1 / 7)) * x + float32(1 / 5)) * x
            + float32(1 / 3)
        ) * x + float32(1)
        js += (p + q) * float32(2) * w * series - min(p, q) * abs(ratio)
        center = uniform if s[j] > 0 else float32(0)
        dot += (p - center) * (q - center)
        norm_s += (p - center) * (p - center)
        norm_o += (q - center) * (q - center)
    # in the order of PAIR_STATISTICS
    out[0] = min(max(js / (2 * LN_2), float32(0)), float32(1))
    out[1] = max(kl, float32(0))
    # the cosine without centering: the uniform row is added back
    out[2] = (dot + uniform) / math.sqrt((norm_s + uniform) * (norm_o + uniform))
    if min(norm_s, norm_o) >= uniform * float32(min_distance) * float32(min_distance):
        out[3] = dot / math.sqrt(norm_s * norm_o)


@intrinsic
def score_panel(
    context: Any, q: Any, row: Any, panels: Any, panel: Any, bias: Any, out: Any, column: Any
) -> Any:
    """out[:4, column : column + 24] = bias + q[row : row + 4] @ panels[panel].

    `q` is (rows, D), `panels` (panel, D, 24), `bias` (keys). Written in LLVM IR, so that all sums
    stay in vector registers over the loop.
    """

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        _, row, _, panel, _, _, column = args
        q, panels, bias, out = (
            context.make_array(signature.args[i])(context, builder, args[i]) for i in (0, 2, 4, 5)
        )
        width, stride = (cgutils.unpack_tuple(builder, array.shape)[1] for array in (panels, out))

        def get_pointer(array: Any, *offsets: Any) -> Any:
            pointer = array.data
            for offset in offsets:
                pointer = builder.gep(pointer, [offset])
            return pointer

        def get_vectors(pointer: Any) -> list[Any]:
            """Pointers to the 8-wide vectors of a panel's row."""
            starts = [
                builder.gep(pointer, [context.get_constant(types.intp, 8 * index)])
                for index in range(KEYS_PER_PANEL // 8)
            ]
            return [builder.bitcast(start, FLOAT32X8.as_pointer()) for start in starts]

        rows = [context.get_constant(types.intp, i) for i in range(ROWS_PER_TILE)]
        first_key = builder.mul(panel, context.get_constant(types.intp, KEYS_PER_PANEL))
        sums = [
            [cgutils.alloca_once(builder, FLOAT32X8) for _ in range(KEYS_PER_PANEL // 8)]
            for _ in rows
        ]
        for vector, pointer in enumerate(get_vectors(get_pointer(bias, first_key))):
            value = builder.load(pointer, align=4)
            for row_sums in sums:
                builder.store(value, row_sums[vector])
        keys = get_pointer(panels, builder.mul(first_key, width))
        queries = [get_pointer(q, builder.mul(builder.add(row, i), width)) for i in rows]
        with cgutils.for_range(builder, width) as loop:
            step = builder.mul(loop.index, context.get_constant(types.intp, KEYS_PER_PANEL))
            key_vectors = [
                builder.load(pointer, align=4) for pointer in get_vectors(builder.gep(keys, [step]))
            ]
            for query, row_sums in zip(queries, sums, strict=True):
                # broadcast one number of the query to all lanes
                number = builder.load(builder.gep(query, [loop.index]))
                lane = builder.insert_element(
                    ir.Constant(FLOAT32X8, ir.Undefined), number, INT32(0)
                )
                broadcast = builder.shuffle_vector(
                    lane, lane, ir.Constant(ir.VectorType(INT32, 8), [0] * 8)
                )
                for total, key_vector in zip(row_sums, key_vectors, strict=True):
                    product = builder.fmul(broadcast, key_vector, flags=("fast",))
                    updated = builder.fadd(builder.load(total), product, flags=("fast",))
                    builder.store(updated, total)
        for i, row_sums in zip(rows, sums, strict=True):
            pointers = get_vectors(get_pointer(out, builder.mul(i, stride), column))
            for total, pointer in zip(row_sums, pointers, strict=True):
                builder.store(builder.load(total), pointer, align=4)
        return context.get_dummy_value()

    return types.void(q, types.intp, panels, types.intp, bias, out, types.intp), build


@intrinsic
def _power_of_two(context: Any, n: Any) -> Any:
    """2 to the power of a whole number (a float): it becomes the exponent bits of the result."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        bits = builder.shl(builder.add(builder.fptosi(args[0], INT32), INT32(127)), INT32(23))
        return builder.bitcast(bits, FLOAT32)

    return types.float32(types.float32), build


def _exponent_bits(builder: Any, x: Any) -> Any:
    # rounded so that the mantissa lies between √½ and √2 (0x3F3504F3 is √½)
    return builder.ashr(builder.sub(builder.bitcast(x, INT32), INT32(0x3F3504F3)), INT32(23))


@intrinsic
def _exponent(context: Any, x: Any) -> Any:
    """Exponent e of x = mantissa · 2ᵉ, as a float."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.sitofp(_exponent_bits(builder, args[0]), FLOAT32)

    return types.float32(types.float32), build


@intrinsic
def _mantissa(context: Any, x: Any) -> Any:
    """Mantissa of x = mantissa · 2ᵉ, between √½ and √2."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        shifted = builder.shl(_exponent_bits(builder, args[0]), INT32(23))
        return builder.bitcast(builder.sub(builder.bitcast(args[0], INT32), shifted), FLOAT32)

    return types.float32(types.float32), build


@inline_njit
def exp(x):
    """exp of a number not above 0, accurate to one or two units in the last place."""
    x = max(x, MIN_EXP_INPUT)
    # x = n · log 2 + r; 1.44… is 1 / log 2
    n = np.floor(x * float32(1.4426950408889634) + float32(0.5))
    # log 2 as a sum of two numbers, so that no digits are lost (Cody and Waite, 1980)
    r = (x - n * float32(0.693359375)) + n * float32(2.12194440e-4)
    p = (
        (
            (((float32(1 / 720) * r + float32(1 / 120)) * r + float32(1 / 24)) * r + float32(1 / 6))
            * r
            + float32(0.5)
        )
        * r
        * r
        + r
        + float32(1)
    )
    return p * _power_of_two(n)  # type: ignore[missing-argument]  # numba passes the context


@inline_njit
def log(x):
    """log of a normal number above 0, accurate to one or two units in the last place."""
    r = _mantissa(x) - float32(1)  # type: ignore[missing-argument]
    p = (
        (float32(7.0376836292e-2) * r - float32(1.1514610310e-1)) * r + float32(1.1676998740e-1)
    ) * r - float32(1.2420140846e-1)
    p = ((p * r + float32(1.4249322787e-1)) * r - float32(1.6668057665e-1)) * r + float32(
        2.0000714765e-1
    )
    p = (p * r - float32(2.4999993993e-1)) * r + float32(3.3333331174e-1)
    exponent = _exponent(x)  # type: ignore[missing-argument]
    return r + r * r * (p * r - float32(0.5)) + exponent * LN_2
