"""One token through a whole GPT-like network in one compiled call: weights are streamed through the cores once.

Each stage shares its rows among the threads: queries, keys and values; the heads; the output; up; down. A linear map is
a tuple (weights, scale, bias) of arrays with the layer first; weights may be 32-bit floats or 8-bit numbers, which are
multiplied with their row's scale. numba compiles it at its first use and keeps the result on disk.
"""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np

from neural.modules.late import torch

SMALL = 2_000_000
"""Weights from which two threads are faster than one: each stage waits for all of them."""
_FLAGS = {"reassoc", "contract", "nsz", "arcp"}
_plain: Any = numba.njit(fastmath=_FLAGS, cache=True)
_fast: Any = numba.njit(parallel=True, fastmath=_FLAGS, cache=True)


@_plain
def _norm(x, kind, scale, shift, epsilon, out):  # noqa: ANN001, ANN202 (numba reads no annotations)
    """LayerNorm (2) or RMSNorm (1)."""
    width = np.float32(x.shape[1])
    for b in range(x.shape[0]):
        given, made = x[b], out[b]
        mean = np.float32(0)
        if kind == 2:
            for i in range(x.shape[1]):
                mean += given[i]
            mean = mean / width
        square = np.float32(0)
        for i in range(x.shape[1]):
            square += (given[i] - mean) * (given[i] - mean)
        factor = np.float32(1) / np.sqrt(square / width + epsilon)
        for i in range(x.shape[1]):
            made[i] = (given[i] - mean) * factor * scale[i] + shift[i]


@_plain
def _rows(x, weights, scale, bias, part, parts, add, out):  # noqa: ANN001, ANN202
    """One of so many parts of the rows of a linear map, for every sample; four samples share a reading of the row."""
    rows, width = weights.shape
    samples = x.shape[0]
    for n in range(part * rows // parts, (part + 1) * rows // parts):
        row = weights[n]
        for b in range(0, samples - 3, 4):
            x0, x1, x2, x3 = x[b], x[b + 1], x[b + 2], x[b + 3]
            t0, t1, t2, t3 = np.float32(0), np.float32(0), np.float32(0), np.float32(0)
            for i in range(width):
                weight = np.float32(row[i])
                t0 += weight * x0[i]
                t1 += weight * x1[i]
                t2 += weight * x2[i]
                t3 += weight * x3[i]
            out[b, n] = t0 * scale[n] + bias[n] + (out[b, n] if add else np.float32(0))
            out[b + 1, n] = t1 * scale[n] + bias[n] + (out[b + 1, n] if add else np.float32(0))
            out[b + 2, n] = t2 * scale[n] + bias[n] + (out[b + 2, n] if add else np.float32(0))
            out[b + 3, n] = t3 * scale[n] + bias[n] + (out[b + 3, n] if add else np.float32(0))
        for b in range(samples - samples % 4, samples):
            given, total = x[b], np.float32(0)
            for i in range(width):
                total += np.float32(row[i]) * given[i]
            out[b, n] = total * scale[n] + bias[n] + (out[b, n] if add else np.float32(0))


@_plain
def _activated(x, part, parts, activation):  # noqa: ANN001, ANN202
    """In place, the rows that `_rows` made: ReLU (0), GELU (1), squared ReLU (2), SiLU (3)."""
    first, last = part * x.shape[1] // parts, (part + 1) * x.shape[1] // parts
    half, one, root = np.float32(0.5), np.float32(1), np.float32(0.7071067811865476)
    for b in range(x.shape[0]):
        for i in range(first, last):
            value = x[b, i]
            if activation == 1:
                x[b, i] = half * value * (one + math.erf(value * root))
            elif activation == 3:
                x[b, i] = value / (one + np.exp(-value))
            elif value < 0:
                x[b, i] = 0
            elif activation == 2:
                x[b, i] = value * value


@_plain
def _placed(x, normed, cosine, sine):  # noqa: ANN001, ANN202
    """A query or key in place: to length √D if `normed`, then turned by its position if there are angles."""
    if normed:
        square = np.float32(0)
        for i in range(x.shape[0]):
            square += x[i] * x[i]
        factor = np.float32(1) / np.sqrt(square / np.float32(x.shape[0]) + np.float32(1e-6))
        for i in range(x.shape[0]):
            x[i] *= factor
    half = cosine.shape[0]
    for i in range(half):
        left, right = x[i], x[half + i]
        x[i] = left * cosine[i] - right * sine[i]
        x[half + i] = left * sine[i] + right * cosine[i]


@_plain
def _attend(q, keys, values, count, weight, out):  # noqa: ANN001, ANN202
    """One head of one sample."""
    scale, largest, total = np.float32(1) / np.sqrt(np.float32(q.shape[0])), np.float32(-np.inf), np.float32(0)
    for j in range(count):
        key, score = keys[j], np.float32(0)
        for d in range(q.shape[0]):
            score += q[d] * key[d]
        weight[j] = score * scale
        largest = max(largest, weight[j])
    for j in range(count):
        weight[j] = np.exp(weight[j] - largest)
        total += weight[j]
    for d in range(q.shape[0]):
        out[d] = 0
    for j in range(count):
        share, value = weight[j] / total, values[j]
        for d in range(q.shape[0]):
            out[d] += share * value[d]


@_fast
def _linear(x, kind, scale, shift, epsilon, weights, row_scale, bias, add, activation, calm, out):  # noqa: ANN001, ANN202
    """A norm (by every thread for itself, it is short), a linear map, an activation."""
    parts = calm.shape[0]
    for part in numba.prange(parts):
        if kind == 0:
            _rows(x, weights, row_scale, bias, part, parts, add, out)
        else:
            _norm(x, kind, scale, shift, epsilon, calm[part])
            _rows(calm[part], weights, row_scale, bias, part, parts, add, out)
        if activation >= 0:
            _activated(out, part, parts, activation)


@_fast
def _heads(projected, at, keys, values, heads, groups, normed, angles, weight, out):  # noqa: ANN001, ANN202
    """Keep the keys and values of the new position, then look at all: a task for each head of keys and values."""
    width, each = keys.shape[3], heads // groups
    for task in numba.prange(projected.shape[0] * groups):
        sample, group = task // groups, task % groups
        start = (heads + group) * width
        _placed(projected[sample, start : start + width], normed, angles[0, at], angles[1, at])
        for head in range(group * each, (group + 1) * each):
            for d in range(width):
                keys[sample, head, at, d] = projected[sample, start + d]
                values[sample, head, at, d] = projected[sample, start + groups * width + d]
            query = projected[sample, head * width : (head + 1) * width]
            _placed(query, normed, angles[0, at], angles[1, at])
            own = out[sample, head * width : (head + 1) * width]
            _attend(query, keys[sample, head], values[sample, head], at + 1, weight[sample, head], own)


@_plain
def step(ids, at, shape, begin, qkv, mix, up, down, head, norms, final, memory, room):  # noqa: ANN001, ANN201
    """Read one id per sample at position `at`; the scores of what comes next are the last array of `room`.

    shape: heads, heads of keys and values, kind of the norms, whether queries and keys are normed, activation.
    begin: table of ids, table of positions, angles (cosine and sine, position, pair). norms: scale and shift (layer,
    before attention and before the feed-forward part, feature), epsilon; final: kind, scale, shift, epsilon. memory:
    keys, values (layer, sample, head, position, feature). room: x, x normed (thread), projections, mixed, inner,
    weights, scores.
    """
    heads, groups, kind, normed, activation = shape
    table, places, angles = begin
    scale, shift, epsilon = norms
    keys, values = memory
    x, calm, projected, mixed, inner, weight, scores = room
    for b in range(x.shape[0]):
        for i in range(x.shape[1]):
            x[b, i] = table[ids[b], i] + places[at, i]
    for n in range(keys.shape[0]):
        before, after = scale[n, 0], shift[n, 0]
        _linear(x, kind, before, after, epsilon, qkv[0][n], qkv[1][n], qkv[2][n], False, -1, calm, projected)
        _heads(projected, at, keys[n], values[n], heads, groups, normed, angles, weight, mixed)
        _linear(mixed, 0, before, after, epsilon, mix[0][n], mix[1][n], mix[2][n], True, -1, calm, x)
        before, after = scale[n, 1], shift[n, 1]
        _linear(x, kind, before, after, epsilon, up[0][n], up[1][n], up[2][n], False, activation, calm, inner)
        _linear(inner, 0, before, after, epsilon, down[0][n], down[1][n], down[2][n], True, -1, calm, x)
    _linear(x, final[0], final[1], final[2], final[3], head[0], head[1], head[2], False, -1, calm, scores)


def threads(weights: int) -> int:
    """For a network of so many weights: as many as torch uses, or one where there is too little to share."""
    used = torch.get_num_threads()
    most: int = vars(numba.config)["NUMBA_NUM_THREADS"]
    wanted = 1 if weights < SMALL else min(used, most)
    numba.set_num_threads(wanted)
    if torch.get_num_threads() != used:   # numba's threads may be OpenMP's, whose number is set when they start
        torch.set_num_threads(used)
    return wanted
