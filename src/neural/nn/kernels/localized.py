# ruff: noqa: ANN001, ANN202 (numba reads no annotations)
"""Kernel of local attention: O(n·w) time, O(n) memory, forward and backward.

`use_kernel` (kernel_dispatch.py) calls `run` instead of `Localized.attend`
(nn/attention/localized.py) if `supports` is True. A sequence has n positions; a query sees the w
keys around it, `reach` = w // 2 on either side.

numba compiles the loops with vector instructions at their first use and caches the code on disk.
One head of one example is one task; tasks run on as many threads as torch uses.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from neural.nn.kernels._arrays import to_numba_arrays
from neural.nn.lazy_torch import torch
from neural.nn.mask import Mask

_njit_parallel: Any = numba.njit(
    parallel=True, fastmath={"reassoc", "contract", "nsz", "arcp"}, cache=True
)


@_njit_parallel
def _forward(q, k, v, key_mask, scale, reach, causal, out, logsum):
    """Attention output, written to `out`, and log-sum-exp of each query's scores, to `logsum`.

    q, k, v and out are (task, position, feature), logsum (task, position). key_mask (example,
    position) is True for real keys; a key_mask of one row is for all examples.
    """
    tasks, queries, width = q.shape
    keys, value_width = k.shape[1], v.shape[2]
    heads = tasks // key_mask.shape[0]
    for task in numba.prange(tasks):
        is_key = key_mask[task // heads]
        weight = np.empty(2 * reach + 1, q.dtype)
        for i in range(queries):
            position = i + keys - queries  # the last query is at the last key
            first = max(0, position - reach)
            last = min(keys, position + 1 if causal else position + reach + 1)
            largest = -np.inf
            for j in range(first, last):
                score = q.dtype.type(0)
                for d in range(width):
                    score += q[task, i, d] * k[task, j, d]
                weight[j - first] = score * scale
                if is_key[j] and weight[j - first] > largest:
                    largest = weight[j - first]
            for d in range(value_width):
                out[task, i, d] = 0
            total = q.dtype.type(0)
            for j in range(first, last):
                weight[j - first] = np.exp(weight[j - first] - largest) if is_key[j] else 0
                total += weight[j - first]
            # A row without visible keys: exp(score - inf) is 0 in the backward pass.
            logsum[task, i] = largest + np.log(total) if total != 0 else np.inf
            if total != 0:  # also if it is NaN: NaN inputs must give NaN outputs
                for j in range(first, last):
                    normalized = weight[j - first] / total
                    for d in range(value_width):
                        out[task, i, d] += normalized * v[task, j, d]


@_njit_parallel
def _backward(
    q, k, v, key_mask, out, logsum, grad_out, scale, reach, causal, grad_q, grad_k, grad_v
):
    """Adds the gradients to grad_q, grad_k and grad_v; other arguments as in `_forward`."""
    tasks, queries, width = q.shape
    keys, value_width = k.shape[1], v.shape[2]
    heads = tasks // key_mask.shape[0]
    for task in numba.prange(tasks):
        is_key = key_mask[task // heads]
        for i in range(queries):
            position = i + keys - queries
            first = max(0, position - reach)
            last = min(keys, position + 1 if causal else position + reach + 1)
            # Softmax backward: grad_score = weight · (grad_weight − Σ weight · grad_weight), where
            # the sum is grad_out·out. Weights are recomputed from the saved log-sum-exp.
            mean_grad = q.dtype.type(0)
            for d in range(value_width):
                mean_grad += grad_out[task, i, d] * out[task, i, d]
            for j in range(first, last):
                if not is_key[j]:
                    continue
                score, grad_weight = q.dtype.type(0), q.dtype.type(0)
                for d in range(width):
                    score += q[task, i, d] * k[task, j, d]
                for d in range(value_width):
                    grad_weight += grad_out[task, i, d] * v[task, j, d]
                weight = np.exp(score * scale - logsum[task, i])
                grad_score = weight * (grad_weight - mean_grad) * scale
                for d in range(width):
                    grad_q[task, i, d] += grad_score * k[task, j, d]
                    grad_k[task, j, d] += grad_score * q[task, i, d]
                for d in range(value_width):
                    grad_v[task, j, d] += weight * grad_out[task, i, d]


@torch.library.custom_op("neural::localized", mutates_args=())
def localized(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    key_mask: torch.Tensor,
    reach: int,
    causal: bool,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Attention output and log-sum-exp of each row; arguments as in `_forward`."""
    out = q.new_empty(*q.shape[:2], v.shape[2])
    logsum = q.new_empty(q.shape[:2])
    scale = q.numpy().dtype.type(q.shape[-1] ** -0.5)
    inputs = to_numba_arrays(q.contiguous(), k.contiguous(), v.contiguous(), key_mask)
    _forward(*inputs, scale, reach, causal, *to_numba_arrays(out, logsum))
    return out, logsum


@localized.register_fake
def _(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    key_mask: torch.Tensor,
    reach: int,
    causal: bool,
) -> tuple[torch.Tensor, torch.Tensor]:
    return q.new_empty(*q.shape[:2], v.shape[2]), q.new_empty(q.shape[:2])


@torch.library.custom_op("neural::localized_backward", mutates_args=())
def localized_backward(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    key_mask: torch.Tensor,
    out: torch.Tensor,
    logsum: torch.Tensor,
    grad_out: torch.Tensor,
    reach: int,
    causal: bool,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Gradients of queries, keys and values."""
    grads = [
        torch.zeros_like(tensor, memory_format=torch.contiguous_format) for tensor in (q, k, v)
    ]
    scale = q.numpy().dtype.type(q.shape[-1] ** -0.5)
    inputs = to_numba_arrays(
        q.contiguous(), k.contiguous(), v.contiguous(), key_mask, out, logsum, grad_out.contiguous()
    )
    _backward(*inputs, scale, reach, causal, *to_numba_arrays(*grads))
    return grads[0], grads[1], grads[2]


@localized_backward.register_fake
def _(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    key_mask: torch.Tensor,
    out: torch.Tensor,
    logsum: torch.Tensor,
    grad_out: torch.Tensor,
    reach: int,
    causal: bool,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    return torch.empty_like(q), torch.empty_like(k), torch.empty_like(v)


def _setup_context(
    ctx: Any, inputs: tuple[Any, ...], output: tuple[torch.Tensor, torch.Tensor]
) -> None:
    q, k, v, key_mask, ctx.reach, ctx.causal = inputs
    ctx.save_for_backward(q, k, v, key_mask, *output)


def _autograd_backward(
    ctx: Any, grad_out: torch.Tensor, _logsum: torch.Tensor | None
) -> tuple[Any, ...]:
    return (
        *localized_backward(*ctx.saved_tensors, grad_out, ctx.reach, ctx.causal),
        None,
        None,
        None,
    )


localized.register_autograd(_autograd_backward, setup_context=_setup_context)


def supports(
    mechanism: Any,
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    mask: Mask,
    dropout: float = 0.0,
    extra: torch.Tensor | None = None,
) -> bool:
    """Whether `run` can compute a call; arguments as in `Localized.attend`.

    It can on the CPU, for 32- and 64-bit floats without dropout. Of the mask it supports padding,
    causality and the window, but no other rules and no biases.
    """
    unsupported = (mask.segments, mask.pairs, mask.bias, mask.key_bias)
    return (
        q.device.type == "cpu"
        and q.dtype in (torch.float32, torch.float64)
        and q.dtype == k.dtype == v.dtype
        and dropout == 0
        and all(tensor is None for tensor in unsupported)
        and not torch.is_autocast_enabled("cpu")
        and q.numel() > 0
    )


def run(
    mechanism: Any,
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    mask: Mask,
    dropout: float = 0.0,
    extra: torch.Tensor | None = None,
) -> torch.Tensor:
    """The same values as `Localized.attend`; (example, head) is flattened to tasks."""
    key_mask = mask.keys if mask.keys is not None else torch.ones(1, k.shape[-2], dtype=torch.bool)
    # The kernel allocates a buffer of the window's width; a window may be wider than the text.
    max_reach = max(q.shape[-2], k.shape[-2])
    reach = min(mechanism.softmax_mask(q, k, mask).reach, max_reach)
    tasks = [tensor.flatten(0, 1) for tensor in (q, k, v)]
    out, _ = localized(*tasks, key_mask != 0, reach, mask.causal)
    return out.unflatten(0, q.shape[:2])
