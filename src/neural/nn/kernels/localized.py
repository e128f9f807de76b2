"""Kernel of local attention: O(n·w) time, O(n) memory, forward and backward.

`use_kernel` (kernel_dispatch.py) calls `run` instead of `Localized.attend`
(nn/attention/localized.py) if `supports` is True. The loops are in native/kernels/localized.cpp. A
sequence has n positions; a query sees the w keys around it, `reach` = w // 2 on either side.
"""

from __future__ import annotations

import ctypes
from typing import Any

from neural.native.library import NativeFunction
from neural.nn.kernels._tensors import strides_of, with_adjacent_features
from neural.nn.lazy_torch import torch
from neural.nn.mask import Mask

TRACEABLE = True
"""`torch.compile` may put the operator in its graph: `supports` reads no values of tensors."""
MAX_REACH = 256
"""Largest reach: the kernel's tables grow with its square. Wider windows use torch's products."""

_forward = NativeFunction("localized_forward", "ppppp pp f ip")
_backward = NativeFunction("localized_backward", "pppp pppp pp f ip")


def _call(
    function: NativeFunction,
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    key_mask: torch.Tensor | None,
    others: list[torch.Tensor],
    reach: int,
    causal: bool,
) -> None:
    """Call a kernel with q, k, v, the mask and `others`; MemoryError if its buffers do not fit."""
    sizes = (*q.shape[:3], k.shape[2], q.shape[3], v.shape[3], reach, int(causal))
    strides = [stride for tensor in (q, k, v, *others) for stride in strides_of(tensor)]
    mask_address, mask_stride = None, 0
    if key_mask is not None:
        # A mask of one row is for all examples.
        mask_address = key_mask.data_ptr()
        mask_stride = key_mask.stride(0) if key_mask.shape[0] > 1 else 0
    ok = ctypes.c_int64(0)
    function(
        *(tensor.data_ptr() for tensor in (q, k, v)),
        mask_address,
        *(tensor.data_ptr() for tensor in others),
        (ctypes.c_int64 * len(sizes))(*sizes),
        (ctypes.c_int64 * (len(strides) + 1))(*strides, mask_stride),
        q.shape[-1] ** -0.5,
        torch.get_num_threads(),
        ctypes.byref(ok),
    )
    if not ok.value:
        raise MemoryError("local attention: no memory for the tables of a window")


@torch.library.custom_op("neural::localized", mutates_args=(), device_types="cpu")
def localized(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    key_mask: torch.Tensor | None,
    reach: int,
    causal: bool,
) -> torch.Tensor:
    """Attention output. Tensors are (B, H, time, features); key_mask (B or 1, K) is True for keys
    that are not padding."""
    out = _empty_output(q, v)
    q, k, v = (with_adjacent_features(tensor) for tensor in (q, k, v))
    _call(_forward, q, k, v, key_mask, [out], reach, causal)
    return out


@torch.library.custom_op("neural::localized_backward", mutates_args=(), device_types="cpu")
def localized_backward(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    key_mask: torch.Tensor | None,
    grad_out: torch.Tensor,
    reach: int,
    causal: bool,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Gradients of queries, keys and values."""
    q, k, v, grad_out = (with_adjacent_features(tensor) for tensor in (q, k, v, grad_out))
    grads = [torch.empty_like(tensor) for tensor in (q, k, v)]
    _call(_backward, q, k, v, key_mask, [grad_out, *grads], reach, causal)
    return grads[0], grads[1], grads[2]


def _empty_output(q: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """An output in the memory layout (B, T, H, V) if the queries have it: the next layer reads it
    in that order."""
    batch, heads, queries, width = *q.shape[:3], v.shape[3]
    if q.transpose(1, 2).is_contiguous() and not q.is_contiguous():
        return q.new_empty(batch, queries, heads, width).transpose(1, 2)
    return q.new_empty(batch, heads, queries, width)


@localized.register_fake
def _(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    key_mask: torch.Tensor | None,
    reach: int,
    causal: bool,
) -> torch.Tensor:
    return _empty_output(q, v)


@localized_backward.register_fake
def _(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    key_mask: torch.Tensor | None,
    grad_out: torch.Tensor,
    reach: int,
    causal: bool,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    grads = [torch.empty_like(with_adjacent_features(tensor)) for tensor in (q, k, v)]
    return grads[0], grads[1], grads[2]


def _setup_context(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
    *tensors, ctx.reach, ctx.causal = inputs
    ctx.save_for_backward(*tensors)


def _autograd_backward(ctx: Any, grad_out: torch.Tensor) -> tuple[Any, ...]:
    grads = localized_backward(*ctx.saved_tensors, grad_out, ctx.reach, ctx.causal)
    return (*grads, None, None, None)


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

    It can on the CPU, for 32-bit floats without dropout and windows that are not very wide. Of the
    mask it supports padding, causality and the window, but no other rules and no biases.
    """
    unsupported = (mask.segments, mask.pairs, mask.bias, mask.key_bias)
    return (
        q.device.type == "cpu"
        and q.dtype == k.dtype == v.dtype == torch.float32
        and dropout == 0
        and all(tensor is None for tensor in unsupported)
        and not torch.is_autocast_enabled("cpu")
        and q.numel() > 0
        and k.numel() > 0
        and _kernel_reach(mechanism, q, k, mask) <= MAX_REACH
    )


def _kernel_reach(mechanism: Any, q: torch.Tensor, k: torch.Tensor, mask: Mask) -> int:
    """The reach, at most the length: a window may be wider than the text."""
    return min(mechanism.softmax_mask(q, k, mask).reach, max(q.shape[-2], k.shape[-2]))


def run(
    mechanism: Any,
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    mask: Mask,
    dropout: float = 0.0,
    extra: torch.Tensor | None = None,
) -> torch.Tensor:
    """The same values as `Localized.attend`."""
    key_mask = None if mask.keys is None else (mask.keys != 0).contiguous()
    return localized(q, k, v, key_mask, _kernel_reach(mechanism, q, k, mask), mask.causal)
