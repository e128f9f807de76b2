# ruff: noqa: ANN001, ANN201, ANN202 (numba reads no annotations)
"""Kernel of one decoding step: one token per sample through a GPT-like network.

`CompiledDecoder` (compiled_decoder.py) prepares the arguments and calls `step`. A sample is one of
the texts that are generated together. Decoding is limited by memory bandwidth, so each weight is
read once per step, for all samples. The stages are: query/key/value projection, attention, output
projection, and the two linear maps "up" and "down" of the feed-forward network. A linear map
divides its rows, which are output features, among the threads. It is a tuple (weights, scale, bias)
of arrays with the layer (transformer block) as first axis. Weights are 32-bit floats, or 8-bit
integers that are multiplied by the scale of their row. numba compiles the step at its first use and
caches the code on disk.
"""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np

from neural.nn.lazy_torch import torch

MIN_PARALLEL_WEIGHTS = 2_000_000
"""Smallest number of weights for several threads.

With fewer weights one thread is faster, because threads wait for each other after each stage.
"""
_LAYER_NORM = 2
"""Code of LayerNorm; 1 is RMSNorm."""
_NO_NORM = 0
_NO_ACTIVATION = -1
_GELU, _SQUARED_RELU, _SILU = 1, 2, 3
"""Codes of activations; 0 is ReLU."""
_FASTMATH_FLAGS = {"reassoc", "contract", "nsz", "arcp"}
_njit: Any = numba.njit(fastmath=_FASTMATH_FLAGS, cache=True)
_njit_parallel: Any = numba.njit(parallel=True, fastmath=_FASTMATH_FLAGS, cache=True)


@_njit
def _norm(x, kind, scale, shift, epsilon, out):
    """LayerNorm (kind 2) or RMSNorm (kind 1) of x (sample, feature), written to `out`."""
    width = np.float32(x.shape[1])
    for b in range(x.shape[0]):
        row, result = x[b], out[b]
        mean = np.float32(0)
        if kind == _LAYER_NORM:
            for i in range(x.shape[1]):
                mean += row[i]
            mean = mean / width
        square = np.float32(0)
        for i in range(x.shape[1]):
            square += (row[i] - mean) * (row[i] - mean)
        factor = np.float32(1) / np.sqrt(square / width + epsilon)
        for i in range(x.shape[1]):
            result[i] = (row[i] - mean) * factor * scale[i] + shift[i]


@_njit
def _linear_rows(x, weights, scale, bias, chunk, chunks, add, out):
    """A linear map for all samples, but only one chunk of its rows: number `chunk` of `chunks`.

    x (sample, feature), weights (row, feature), out (sample, row). With `add` the result is added
    to `out`. Each row is read once for four samples; the rest of the samples follow one by one.
    """
    rows, width = weights.shape
    samples = x.shape[0]
    for n in range(chunk * rows // chunks, (chunk + 1) * rows // chunks):
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
            inputs, total = x[b], np.float32(0)
            for i in range(width):
                total += np.float32(row[i]) * inputs[i]
            out[b, n] = total * scale[n] + bias[n] + (out[b, n] if add else np.float32(0))


@_njit
def _activate(x, chunk, chunks, activation):
    """ReLU (0), GELU (1), squared ReLU (2) or SiLU (3) of one chunk of columns, in place."""
    first, last = chunk * x.shape[1] // chunks, (chunk + 1) * x.shape[1] // chunks
    half, one, sqrt_half = np.float32(0.5), np.float32(1), np.float32(0.7071067811865476)
    for b in range(x.shape[0]):
        for i in range(first, last):
            value = x[b, i]
            if activation == _GELU:
                x[b, i] = half * value * (one + math.erf(value * sqrt_half))
            elif activation == _SILU:
                x[b, i] = value / (one + np.exp(-value))
            elif value < 0:
                x[b, i] = 0
            elif activation == _SQUARED_RELU:
                x[b, i] = value * value


@_njit
def _normalize_rotate(x, normalize, cosine, sine):
    """Scale a query or key x (feature) to length √D if `normalize`, and rotate it, in place.

    `cosine` and `sine` have one value per pair of features; without pairs there is no rotation.
    """
    if normalize:
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


@_njit
def _attend(q, keys, values, count, weight, out):
    """Attention of one head of one sample to the first `count` keys.

    q (feature), keys and values (position, feature). Writes `out` (feature), and to `weight`
    (position) the attention weights before division by their sum.
    """
    scale, largest, total = (
        np.float32(1) / np.sqrt(np.float32(q.shape[0])),
        np.float32(-np.inf),
        np.float32(0),
    )
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
        normalized, value = weight[j] / total, values[j]
        for d in range(q.shape[0]):
            out[d] += normalized * value[d]


@_njit_parallel
def _linear(x, kind, scale, shift, epsilon, weights, row_scale, bias, add, activation, normed, out):
    """Norm (kind 0: none), linear map, activation (-1: none); one chunk of rows per thread.

    `scale`, `shift` and `epsilon` belong to the norm; `add` adds the result to `out`. Every thread
    computes the whole norm for itself, in its entry of `normed` (thread, sample, feature): that
    takes less time than waiting for another thread.
    """
    chunks = normed.shape[0]
    for chunk in numba.prange(chunks):
        if kind == _NO_NORM:
            _linear_rows(x, weights, row_scale, bias, chunk, chunks, add, out)
        else:
            _norm(x, kind, scale, shift, epsilon, normed[chunk])
            _linear_rows(normed[chunk], weights, row_scale, bias, chunk, chunks, add, out)
        if activation != _NO_ACTIVATION:
            _activate(out, chunk, chunks, activation)


@_njit_parallel
def _attend_heads(projected, position, keys, values, heads, groups, normalize, angles, weight, out):
    """Cache keys and values of the new position, then attend to all positions.

    projected (sample, feature) has the queries of all `heads`, then the keys and the values of the
    `groups` key/value heads, each shared by a group of query heads. angles (2, position, pair) are
    cosine and sine. One task per sample and key/value head.
    """
    width, group_size = keys.shape[3], heads // groups
    for task in numba.prange(projected.shape[0] * groups):
        sample, group = task // groups, task % groups
        key_start = (heads + group) * width
        value_start = key_start + groups * width
        _normalize_rotate(
            projected[sample, key_start : key_start + width],
            normalize,
            angles[0, position],
            angles[1, position],
        )
        for head in range(group * group_size, (group + 1) * group_size):
            for d in range(width):
                keys[sample, head, position, d] = projected[sample, key_start + d]
                values[sample, head, position, d] = projected[sample, value_start + d]
            query = projected[sample, head * width : (head + 1) * width]
            _normalize_rotate(query, normalize, angles[0, position], angles[1, position])
            head_out = out[sample, head * width : (head + 1) * width]
            _attend(
                query,
                keys[sample, head],
                values[sample, head],
                position + 1,
                weight[sample, head],
                head_out,
            )


@_njit
def step(
    ids,
    position,
    config,
    embeddings,
    qkv,
    attention_output,
    up,
    down,
    output_layer,
    norms,
    final_norm,
    kv_memory,
    workspace,
):
    """Read one token id per sample at `position` (from 0); write logits, the last of `workspace`.

    config: number of heads and key/value heads, kind of the norms, whether queries and keys are
        normalized, activation
    embeddings: token table, position table, angles (cosine and sine, position, pair)
    qkv, attention_output, up, down: linear maps (weights, scale, bias), layer first
    output_layer: a linear map without the layer axis
    norms: scale and shift (layer, before attention and before feed-forward, feature), epsilon
    final_norm: kind, scale, shift, epsilon
    kv_memory: keys, values (layer, sample, head, position, feature)
    workspace: x, normed x (thread first), projections, attended values, hidden features, attention
        weights, logits
    """
    heads, groups, kind, normalize, activation = config
    token_table, position_table, angles = embeddings
    scale, shift, epsilon = norms
    keys, values = kv_memory
    x, normed, projected, attended, hidden, weight, logits = workspace
    for b in range(x.shape[0]):
        for i in range(x.shape[1]):
            x[b, i] = token_table[ids[b], i] + position_table[position, i]
    for layer in range(keys.shape[0]):
        norm_scale, norm_shift = scale[layer, 0], shift[layer, 0]
        _linear(
            x,
            kind,
            norm_scale,
            norm_shift,
            epsilon,
            qkv[0][layer],
            qkv[1][layer],
            qkv[2][layer],
            False,  # add
            _NO_ACTIVATION,
            normed,
            projected,
        )
        _attend_heads(
            projected,
            position,
            keys[layer],
            values[layer],
            heads,
            groups,
            normalize,
            angles,
            weight,
            attended,
        )
        _linear(
            attended,
            _NO_NORM,
            norm_scale,
            norm_shift,
            epsilon,
            attention_output[0][layer],
            attention_output[1][layer],
            attention_output[2][layer],
            True,  # add: the residual connection
            _NO_ACTIVATION,
            normed,
            x,
        )
        norm_scale, norm_shift = scale[layer, 1], shift[layer, 1]
        _linear(
            x,
            kind,
            norm_scale,
            norm_shift,
            epsilon,
            up[0][layer],
            up[1][layer],
            up[2][layer],
            False,  # add
            activation,
            normed,
            hidden,
        )
        _linear(
            hidden,
            _NO_NORM,
            norm_scale,
            norm_shift,
            epsilon,
            down[0][layer],
            down[1][layer],
            down[2][layer],
            True,  # add
            _NO_ACTIVATION,
            normed,
            x,
        )
    _linear(
        x,
        final_norm[0],
        final_norm[1],
        final_norm[2],
        final_norm[3],
        output_layer[0],
        output_layer[1],
        output_layer[2],
        False,  # add
        _NO_ACTIVATION,
        normed,
        logits,
    )


def set_thread_count(num_weights: int) -> int:
    """Set and return numba's thread count: torch's, or 1 for a network of few weights."""
    torch_threads = torch.get_num_threads()
    max_threads: int = vars(numba.config)["NUMBA_NUM_THREADS"]
    threads = 1 if num_weights < MIN_PARALLEL_WEIGHTS else min(torch_threads, max_threads)
    numba.set_num_threads(threads)
    # numba may share OpenMP threads with torch; starting them can change torch's thread count.
    if torch.get_num_threads() != torch_threads:
        torch.set_num_threads(torch_threads)
    return threads
