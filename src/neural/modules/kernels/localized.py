"""Attention inside a window, one position after the other: O(n·w) time, O(n) memory, forward and backward.

The loops are plain; numba compiles them with vector instructions at their first use and keeps the result on disk. A
head of an example is one task; tasks run on as many threads as torch uses.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from neural.modules.kernels.arrays import arrays
from neural.modules.late import torch
from neural.modules.mask import Mask

_fast: Any = numba.njit(parallel=True, fastmath={"reassoc", "contract", "nsz", "arcp"}, cache=True)


@_fast
def _forward(q, k, v, real, scale, reach, causal, out, logsum):  # noqa: ANN001, ANN202 (numba reads no annotations)
    tasks, queries, width = q.shape
    keys, values = k.shape[1], v.shape[2]
    heads = tasks // real.shape[0]
    for task in numba.prange(tasks):
        seen = real[task // heads]
        weight = np.empty(2 * reach + 1, q.dtype)
        for i in range(queries):
            at = i + keys - queries   # the last query stands at the last key
            first, last = max(0, at - reach), min(keys, at + 1 if causal else at + reach + 1)
            largest = -np.inf
            for j in range(first, last):
                score = q.dtype.type(0)
                for d in range(width):
                    score += q[task, i, d] * k[task, j, d]
                weight[j - first] = score * scale
                if seen[j] and weight[j - first] > largest:
                    largest = weight[j - first]
            for d in range(values):
                out[task, i, d] = 0
            total = q.dtype.type(0)
            for j in range(first, last):
                weight[j - first] = np.exp(weight[j - first] - largest) if seen[j] else 0
                total += weight[j - first]
            logsum[task, i] = largest + np.log(total) if total != 0 else np.inf   # an empty row: every weight is 0
            if total != 0:   # also where it is NaN: what went in as NaN must come out as NaN
                for j in range(first, last):
                    share = weight[j - first] / total
                    for d in range(values):
                        out[task, i, d] += share * v[task, j, d]


@_fast
def _backward(q, k, v, real, out, logsum, given, scale, reach, causal, to_q, to_k, to_v):  # noqa: ANN001, ANN202
    tasks, queries, width = q.shape
    keys, values = k.shape[1], v.shape[2]
    heads = tasks // real.shape[0]
    for task in numba.prange(tasks):
        seen = real[task // heads]
        for i in range(queries):
            at = i + keys - queries
            first, last = max(0, at - reach), min(keys, at + 1 if causal else at + reach + 1)
            mean = q.dtype.type(0)
            for d in range(values):
                mean += given[task, i, d] * out[task, i, d]
            for j in range(first, last):
                if not seen[j]:
                    continue
                score, through = q.dtype.type(0), q.dtype.type(0)
                for d in range(width):
                    score += q[task, i, d] * k[task, j, d]
                for d in range(values):
                    through += given[task, i, d] * v[task, j, d]
                share = np.exp(score * scale - logsum[task, i])
                change = share * (through - mean) * scale
                for d in range(width):
                    to_q[task, i, d] += change * k[task, j, d]
                    to_k[task, j, d] += change * q[task, i, d]
                for d in range(values):
                    to_v[task, j, d] += share * given[task, i, d]


@torch.library.custom_op("neural::localized", mutates_args=())
def localized(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, real: torch.Tensor, reach: int, causal: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """The mixed values and the log of each row's sum, for (task, position, feature) inputs."""
    out = q.new_empty(*q.shape[:2], v.shape[2])
    logsum = q.new_empty(q.shape[:2])
    scale = q.numpy().dtype.type(q.shape[-1] ** -0.5)
    inputs = arrays(q.contiguous(), k.contiguous(), v.contiguous(), real)
    _forward(*inputs, scale, reach, causal, *arrays(out, logsum))
    return out, logsum


@localized.register_fake
def _(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, real: torch.Tensor, reach: int, causal: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    return q.new_empty(*q.shape[:2], v.shape[2]), q.new_empty(q.shape[:2])


@torch.library.custom_op("neural::localized_backward", mutates_args=())
def localized_backward(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, real: torch.Tensor, out: torch.Tensor, logsum: torch.Tensor,
    given: torch.Tensor, reach: int, causal: bool,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:  # fmt: skip
    """The gradients of queries, keys and values."""
    made = [torch.zeros_like(one, memory_format=torch.contiguous_format) for one in (q, k, v)]
    scale = q.numpy().dtype.type(q.shape[-1] ** -0.5)
    inputs = arrays(q.contiguous(), k.contiguous(), v.contiguous(), real, out, logsum, given.contiguous())
    _backward(*inputs, scale, reach, causal, *arrays(*made))
    return made[0], made[1], made[2]


@localized_backward.register_fake
def _(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, real: torch.Tensor, out: torch.Tensor, logsum: torch.Tensor,
    given: torch.Tensor, reach: int, causal: bool,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:  # fmt: skip
    return torch.empty_like(q), torch.empty_like(k), torch.empty_like(v)


def _remember(ctx: Any, inputs: tuple[Any, ...], output: tuple[torch.Tensor, torch.Tensor]) -> None:
    q, k, v, real, ctx.reach, ctx.causal = inputs
    ctx.save_for_backward(q, k, v, real, *output)


def _gradient(ctx: Any, given: torch.Tensor, _logsum: torch.Tensor | None) -> tuple[Any, ...]:
    return *localized_backward(*ctx.saved_tensors, given, ctx.reach, ctx.causal), None, None, None


localized.register_autograd(_gradient, setup_context=_remember)


def fits(
    mechanism: Any, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: Mask, dropout: float = 0.0,
    extra: torch.Tensor | None = None,
) -> bool:  # fmt: skip
    """On the CPU, in 32 or 64 bits, under padding and causality alone."""
    others = (mask.segments, mask.pairs, mask.bias, mask.key_bias)
    return (
        q.device.type == "cpu" and q.dtype in (torch.float32, torch.float64) and q.dtype == k.dtype == v.dtype
        and dropout == 0 and all(one is None for one in others) and not torch.is_autocast_enabled("cpu")
        and q.numel() > 0
    )  # fmt: skip


def run(
    mechanism: Any, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: Mask, dropout: float = 0.0,
    extra: torch.Tensor | None = None,
) -> torch.Tensor:  # fmt: skip
    """Heads of all examples side by side, through the kernel."""
    real = mask.keys if mask.keys is not None else torch.ones(1, k.shape[-2], dtype=torch.bool)
    farthest = max(q.shape[-2], k.shape[-2])   # there is room for a window, and it may be wider than the text
    reach = min(mechanism.as_softmax(q, k, mask).reach, farthest)
    flat = [one.flatten(0, 1) for one in (q, k, v)]
    out, _ = localized(*flat, real != 0, reach, mask.causal)
    return out.unflatten(0, q.shape[:2])
