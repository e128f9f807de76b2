"""Kernel of sparsemax and 1.5-entmax along the last axis, forward and backward, without sorting.

The loops are in native/kernels/entmax_rows.cpp; sparsemax.py and entmax15.py in this folder are the
replacements of the two functions.
"""

from __future__ import annotations

import ctypes
from typing import Any

from neural.native.library import NativeFunction
from neural.nn.lazy_torch import torch

_forward = NativeFunction("entmax_rows_forward", "pp iii i p")
_backward = NativeFunction("entmax_rows_backward", "ppp iii i")


@torch.library.custom_op("neural::entmax_rows", mutates_args=(), device_types="cpu")
def entmax_rows(scores: torch.Tensor, squared: bool) -> torch.Tensor:
    """Weights that sum to 1 along the last axis: 1.5-entmax if `squared`, else sparsemax."""
    scores = scores.contiguous()
    weights = _empty_weights(scores)
    count, has_memory = scores.shape[-1], ctypes.c_int64()
    _forward(
        scores.data_ptr(),
        weights.data_ptr(),
        scores.numel() // count,
        count,
        int(squared),
        torch.get_num_threads(),
        ctypes.byref(has_memory),
    )
    if not has_memory.value:
        raise MemoryError(f"entmax: no memory for a row of {count} scores")
    return weights


@torch.library.custom_op("neural::entmax_rows_backward", mutates_args=(), device_types="cpu")
def entmax_rows_backward(
    weights: torch.Tensor, grad_weights: torch.Tensor, squared: bool
) -> torch.Tensor:
    """Gradient of the scores."""
    weights, grad_weights = weights.contiguous(), grad_weights.contiguous()
    grad_scores, count = _empty_weights(weights), weights.shape[-1]
    _backward(
        *(tensor.data_ptr() for tensor in (weights, grad_weights, grad_scores)),
        weights.numel() // count,
        count,
        int(squared),
        torch.get_num_threads(),
    )
    return grad_scores


def _empty_weights(scores: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(scores, memory_format=torch.contiguous_format)


@entmax_rows.register_fake
def _(scores: torch.Tensor, squared: bool) -> torch.Tensor:
    return _empty_weights(scores)


@entmax_rows_backward.register_fake
def _(weights: torch.Tensor, grad_weights: torch.Tensor, squared: bool) -> torch.Tensor:
    return _empty_weights(weights)


def _setup_context(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
    ctx.squared = inputs[1]
    ctx.save_for_backward(output)


def _autograd_backward(ctx: Any, grad_weights: torch.Tensor) -> tuple[Any, None]:
    return entmax_rows_backward(*ctx.saved_tensors, grad_weights, ctx.squared), None


entmax_rows.register_autograd(_autograd_backward, setup_context=_setup_context)


def supports(scores: torch.Tensor) -> bool:
    """Whether the kernel can compute these rows: 32-bit floats on the CPU."""
    return scores.device.type == "cpu" and scores.dtype == torch.float32 and scores.numel() > 0
