"""Shared by the kernels of attention mechanisms: supported calls, sizes and memory.

Their tensors are q (B, H, Q, D), k (B, H, K, D) and v (B, H, K, V): B batch, H heads, Q queries,
K keys, D head width, V width of values.
"""

from __future__ import annotations

import ctypes
from typing import Any

from neural.native.library import NativeFunction
from neural.nn.lazy_torch import torch
from neural.nn.mask import Mask


def supports_inputs(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: Mask, dropout: float
) -> bool:
    """Whether a kernel can attend: 32-bit floats on the CPU, no dropout.

    Of the mask only padding (`keys`) and causality may be set. Reads no values of tensors.
    """
    unsupported = (mask.reach, mask.segments, mask.pairs, mask.bias, mask.key_bias)
    return (
        q.device.type == "cpu"
        and q.dtype == k.dtype == v.dtype == torch.float32
        and dropout == 0
        and all(rule is None for rule in unsupported)
        and not torch.is_autocast_enabled("cpu")
        and q.numel() > 0
        and k.numel() > 0
        and v.numel() > 0
    )


def expand_key_mask(mask: Mask, k: torch.Tensor) -> torch.Tensor | None:
    """The padding mask (B, K) as contiguous booleans, True for real keys; None without one."""
    if mask.keys is None:
        return None
    return (mask.keys != 0).expand(k.shape[0], k.shape[2]).contiguous()


def address_of(tensor: torch.Tensor | None) -> int | None:
    """Address of the first value; None, which is NULL in C, for None."""
    return None if tensor is None else tensor.data_ptr()


def list_sizes(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool) -> ctypes.Array:
    """B, H, Q, K, D, V and causality as an array of C."""
    sizes = (*q.shape[:3], k.shape[2], q.shape[3], v.shape[3], int(causal))
    return (ctypes.c_int64 * len(sizes))(*sizes)


def allocate_scratch(
    scratch_size: NativeFunction, sizes: ctypes.Array, threads: int
) -> torch.Tensor:
    """Working memory of a kernel; its function `scratch_size` tells how many floats it needs."""
    count = ctypes.c_int64()
    scratch_size(sizes, threads, ctypes.byref(count))
    return torch.empty(count.value, dtype=torch.float32)


def empty_gradients(*tensors: torch.Tensor) -> Any:
    """A contiguous tensor for the gradient of each tensor."""
    return tuple(torch.empty_like(x, memory_format=torch.contiguous_format) for x in tensors)


def empty_output(q: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """A contiguous tensor (B, H, Q, V)."""
    return q.new_empty(*q.shape[:3], v.shape[3])
