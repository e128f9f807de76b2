# ruff: noqa: ANN001, ANN201, ANN202 (numba reads no annotations)
"""Loops over the rows of attention, compiled: four rows are scored, measured and forgotten; no Q×K matrix anywhere.

All is 32-bit: positions come as floats, because a conversion from 64 bits would keep the compiler from using vectors.
A hidden score lies below VISIBLE; its weight is exactly 0, while that of a visible key is always above 0. What has no
value is not written: the caller has put NaN there.

Arguments of all three: `q` are scaled queries, with zeros behind the last up to a multiple of four; `panels` the keys,
transposed, 24 and 24 together; `by_key` is added to the scores of a key; `by_pair` too, pair by pair, or has no rows.
`origins` has for every row the first key of its text, the place of an attention sink, or −1. `order`
is: the number of keys; how many of them, from the first on, are positions; the key that the first row
stands at; how many keys before and after its own a row sees; whether it sees its origin; whether rows
and keys share an axis; and the number of threads. Each thread takes every so many-th block of rows
from the beginning to the end: on a busy machine, threads that meet after every few rows mostly wait
for each other.

Keys behind the positions (learned sinks) are part of every distribution: sums, entropies, largest
weights, comparisons. They have no position: distances count them as 0, mean positions leave them out.
"""

from __future__ import annotations

import math

import numba
import numpy as np

from neural.tracking import look
from neural.tracking.vectors import LEAST, LOG2, PANEL, exp, f4, inlined, log, score_panel

HIDDEN, VISIBLE = f4(look.HIDDEN), f4(look.VISIBLE)

_part = numba.njit(fastmath=True)
_loops = numba.njit(parallel=True, fastmath=True, cache=True)


@inlined
def _seen_from(here, before):
    return max(0, here - before)


@inlined
def _seen_to(here, after, keys):
    return max(0, min(keys, here + after + 1))


@inlined
def _panel_of(key):
    return key // PANEL * PANEL


@_part
def _score(q, panels, by_key, by_pair, r, low, high, scores):
    """The scores of rows r to r + 3 with keys low to high, into `scores`, whose first column is that of a panel."""
    left = _panel_of(low)
    for a in range(left, high, PANEL):
        score_panel(q, r, panels, a // PANEL, by_key, scores, a - left)  # type: ignore[missing-argument]
    for i in range(4):
        if r + i < by_pair.shape[0]:
            s, bias = scores[i, low - left :], by_pair[r + i, low : max(high, low)]
            for j in range(bias.size):
                s[j] += bias[j]


@_part
def _open(s, sink, origin):
    """The first visible key, or the row's length. Without the sink, the key `origin` is hidden before."""
    if not sink and 0 <= origin < s.size:
        s[origin] = HIDDEN
    first = 0
    while first < s.size and s[first] < VISIBLE:
        first += 1
    return first


@_part
def _weigh(s):
    """Turn scores into weights times their sum, in place; the largest score, the sum, the entropy, the visible keys."""
    top = HIDDEN
    for j in range(s.size):
        top = max(top, s[j])
    total, mean, seen = f4(0), f4(0), f4(0)
    for j in range(s.size):
        below = max(s[j] - top, LEAST)
        there = f4(1) if s[j] > VISIBLE else f4(0)
        s[j] = exp(below) * there
        total += s[j]
        mean += s[j] * below
        seen += there
    return top, total, math.log(total) - mean / total, seen


@_part
def _sum(e, low, high):
    total = f4(0)
    part = e[max(low, 0) : max(min(high, e.size), max(low, 0))]
    for j in range(part.size):
        total += part[j]
    return total


@_part
def _within(e, here, share):
    """The smallest distance from `here` within which `share` of the mass lies: by blocks, then one by one."""
    mass, away, step = f4(0), 0, 64
    far = max(here, e.size - 1 - here)
    while away < far:
        more = _sum(e, here - away - step + 1, here - away + 1) + _sum(e, here + max(away, 1), here + away + step)
        if mass + more >= share:
            if step == 1:
                break
            step = 1   # it lies in this block
        else:
            mass += more
            away += step
    return min(away, far)


@_loops
def rows(q, panels, by_key, by_pair, origins, order, positions, targets, far, spread, within, out):
    """Columns of `out` as in ROWS; `far`, `spread` and `within` say whether to find what takes another pass."""
    keys, places, at, before, after, sink, shared, threads = order
    scratch = np.empty((threads, 4, by_key.size), f4)
    for thread in numba.prange(threads):
        for r in range(4 * thread, q.shape[0], 4 * threads):
            low, high, scores = _seen_from(at + r, before), _seen_to(at + r + 3, after, keys), scratch[thread]
            left = _panel_of(low)
            _score(q, panels, by_key, by_pair, r, low, high, scores)
            for i in range(min(4, out.shape[1] - r)):
                here = at + r + i
                low, high = _seen_from(here, before), _seen_to(here, after, keys)
                s = scores[i, low - left : max(high, low) - left]
                first = _open(s, sink, origins[r + i] - low)
                if first < s.size:
                    low += first
                    size = max(0, min(s.size - first, places - low))
                    wanted, special = (far, spread, within, shared), (origins[r + i], targets[r + i])
                    _row(s[first:], size, low, here, positions, special, wanted, out[:, r + i])


@_part
def _row(s, size, low, here, positions, special, wanted, out):
    """Measures of one row; `s` are its scores from key `low` on, the first `size` of positions."""
    far, spread, within, shared = wanted
    origin, target = special
    top, total, entropy, seen = _weigh(s)
    out[0], out[1], out[2], out[3] = entropy, seen, top, 1 / total
    extra = _sum(s, size, s.size)
    out[12] = extra / total
    placed = total if size == s.size else _sum(s, 0, size)
    s = s[:size]
    if seen > 1 and origin >= 0:   # a row that sees one key has no choice
        there = low <= origin < low + size and s[origin - low] > 0
        out[4] = s[origin - low] / total if there else f4(0)
        out[14] = f4(1) if there else f4(0)
    if shared:
        out[13] = abs(f4(here) - f4(origin))   # of use with out[4] alone
        for column, key in ((5, here - 1), (6, here), (7, target)):
            if key >= low and key - low < size and s[key - low] > 0:
                out[column] = s[key - low] / total
    if far:
        position, own = positions[low : low + size], f4(here)
        distance, shift = f4(0), f4(0)
        for j in range(size):
            away = position[j] - own
            distance += s[j] * abs(away)
            shift += s[j] * away
        if shared:
            out[8] = distance / total
        if placed > 0:
            shift /= placed
            out[9] = own + shift
            if spread:
                square = f4(0)
                for j in range(size):
                    away = position[j] - own - shift
                    square += s[j] * away * away
                out[10] = math.sqrt(square / placed)
    if within > 0 and shared:
        out[11] = _within(s, here - low, f4(within) * total - extra)


@_loops
def heads(q, panels, by_key, by_pair, origins, order, out):
    """Columns of `out` as in HEADS; all but `out` have an axis of heads in front."""
    keys, _, at, before, after, sink, _, threads = order
    count = q.shape[0]
    scratch = np.empty((threads, 8, by_key.shape[1]), f4)
    for thread in numba.prange(threads):
        for r in range(4 * thread, q.shape[1], 4 * threads):
            right, left = _seen_to(at + r + 3, after, keys), _panel_of(_seen_from(at + r, before))
            scores, mean = scratch[thread, :4], scratch[thread, 4:]
            mean[:, : max(right - left, 0)] = 0
            entropies, square, full = np.zeros(4, f4), np.zeros(4, f4), np.ones(4, np.bool_)
            for h in range(count):
                own = panels[h * panels.shape[0] // count]
                _score(q[h], own, by_key[h], by_pair[h], r, _seen_from(at + r, before), right, scores)
                for i in range(4):
                    low, high = _seen_from(at + r + i, before) - left, _seen_to(at + r + i, after, keys) - left
                    s, m = scores[i, low : max(high, low)], mean[i, low : max(high, low)]
                    origin = origins[min(r + i, origins.size - 1)] - left - low
                    full[i] = full[i] and _open(s, sink, origin) < s.size
                    if full[i]:
                        _, total, entropy, _ = _weigh(s)
                        entropies[i] += entropy
                        # mean and variance as they come (Welford, 1962)
                        share, weight, spread = 1 / total, f4(1) / f4(h + 1), f4(0)
                        for j in range(s.size):
                            change = s[j] * share - m[j]
                            m[j] += change * weight
                            spread += change * (s[j] * share - m[j])
                        square[i] += spread
            for i in range(min(4, out.shape[1] - r)):
                if full[i]:
                    m, together, seen = mean[i, : right - left], f4(0), f4(0)
                    for j in range(m.size):
                        together -= m[j] * log(max(m[j], f4(1e-37)))
                        seen += f4(1) if m[j] > 0 else f4(0)
                    out[0, r + i] = max(together - entropies[i] / f4(count), f4(0))
                    out[1, r + i] = square[i] / f4(count) / seen


@_loops
def pairs(q, panels, by_key, by_pair, origins, order, q_other, panels_other, least, out):
    """Columns of `out` as in PAIRS, for two layers under one mask; `least` is how far from uniform a row must be."""
    keys, _, at, before, after, sink, _, threads = order
    scratch = np.empty((threads, 9, by_key.size), f4)
    for thread in numba.prange(threads):
        for r in range(4 * thread, q.shape[0], 4 * threads):
            low, high = _seen_from(at + r, before), _seen_to(at + r + 3, after, keys)
            scores, others, gap = scratch[thread, :4], scratch[thread, 4:8], scratch[thread, 8]
            left = _panel_of(low)
            _score(q, panels, by_key, by_pair, r, low, high, scores)
            _score(q_other, panels_other, by_key, by_pair, r, low, high, others)
            for i in range(min(4, out.shape[1] - r)):
                low, high = _seen_from(at + r + i, before) - left, _seen_to(at + r + i, after, keys) - left
                s, o = scores[i, low : max(high, low)], others[i, low : max(high, low)]
                origin = origins[r + i] - left - low
                if _open(s, sink, origin) < s.size and _open(o, sink, origin) < o.size:
                    _pair(s, o, gap, least, out[:, r + i])


@_part
def _pair(s, o, gap, least, out):
    """All that two rows have to say about each other; `gap` is scratch."""
    for j in range(s.size):
        gap[j] = s[j] - o[j]
    top, total, _, seen = _weigh(s)
    top_o, total_o, _, _ = _weigh(o)
    share, share_o, even = 1 / total, 1 / total_o, 1 / seen
    offset = (top - top_o) + math.log(total) - math.log(total_o)
    js, kl, flat, flat_s, flat_o = f4(0), f4(0), f4(0), f4(0), f4(0)
    for j in range(s.size):
        p, q = s[j] * share, o[j] * share_o
        ratio = gap[j] - offset   # log p − log q
        kl += p * ratio
        # p log(p/m) + q log(q/m) = (p + q) L − smaller·|ratio| with L = log(larger/m) = 2 atanh(w), m the mean of both
        w = abs(p - q) / max(p + q + f4(2) * max(p, q), f4(1e-37))
        x = w * w
        poly = ((((f4(1 / 11) * x + f4(1 / 9)) * x + f4(1 / 7)) * x + f4(1 / 5)) * x + f4(1 / 3)) * x + f4(1)
        js += (p + q) * f4(2) * w * poly - min(p, q) * abs(ratio)
        uniform = even if s[j] > 0 else f4(0)
        flat += (p - uniform) * (q - uniform)
        flat_s += (p - uniform) * (p - uniform)
        flat_o += (q - uniform) * (q - uniform)
    out[0] = min(max(js / (2 * LOG2), f4(0)), f4(1))
    out[1] = max(kl, f4(0))
    out[2] = (flat + even) / math.sqrt((flat_s + even) * (flat_o + even))   # the uniform part put back
    if min(flat_s, flat_o) >= even * f4(least) * f4(least):
        out[3] = flat / math.sqrt(flat_s * flat_o)


ROWS = (
    "entropy", "visible", "logit", "largest", "first", "previous", "diagonal", "induction", "distance", "position",
    "spread", "within", "extra", "from_first", "sees_first",
)  # fmt: skip
HEADS = ("diversity", "variance")
PAIRS = ("js", "kl", "cosine", "centred")
