"""Kernel of the root-mean-square norm: one pass over the data, forward and backward.

`use_kernel` (kernel_dispatch.py) calls `run` instead of `apply_norm` (nn/transformer_block.py) if
`supports` is True; `norm` is an `nn.RMSNorm`. torch computes the backward pass of its RMS norm by
a dozen elementwise operations. The loops are in native/kernels/rms_norm.cpp.
"""

from __future__ import annotations

from typing import Any

from neural.native.library import NativeFunction
from neural.nn.kernels._operator import Operator
from neural.nn.lazy_torch import nn, torch

_forward = NativeFunction("rms_norm_forward", "ppp ii f i")
_backward = NativeFunction("rms_norm_backward", "pppppp ii f i")
CHUNK_ROWS = 64
"""Rows whose gradients of the weight are summed by one task; CHUNK_ROWS in rms_norm.cpp."""


def _compute(x: torch.Tensor, weight: torch.Tensor, epsilon: float) -> torch.Tensor:
    """The norm of each row of `x` over its last axis, times `weight`; both contiguous."""
    out, width = torch.empty_like(x), x.shape[-1]
    _forward(
        x.data_ptr(),
        weight.data_ptr(),
        out.data_ptr(),
        x.numel() // width,
        width,
        epsilon,
        torch.get_num_threads(),
    )
    return out


def _compute_gradient(
    x: torch.Tensor, weight: torch.Tensor, epsilon: float, grad_out: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Gradients of x and weight."""
    width, grad_out = x.shape[-1], grad_out.contiguous()
    rows = x.numel() // width
    grad_x, grad_weight = torch.empty_like(x), torch.empty_like(weight)
    partial = x.new_empty(-(-rows // CHUNK_ROWS), width)
    _backward(
        x.data_ptr(),
        weight.data_ptr(),
        grad_out.data_ptr(),
        grad_x.data_ptr(),
        grad_weight.data_ptr(),
        partial.data_ptr(),
        rows,
        width,
        epsilon,
        torch.get_num_threads(),
    )
    return grad_x, grad_weight


rms_norm = Operator(
    "rms_norm",
    _compute,
    lambda x, weight, epsilon: torch.empty_like(x),
    _compute_gradient,
    lambda x, weight, epsilon, grad_out: (torch.empty_like(x), torch.empty_like(weight)),
)


def supports(norm: Any, x: torch.Tensor) -> bool:
    """Whether `run` can compute a call: an RMS norm of contiguous 32-bit floats on the CPU."""
    return (
        type(norm) is nn.RMSNorm
        and norm.eps is not None
        and len(norm.normalized_shape) == 1
        and type(norm.weight) is nn.Parameter
        and _is_plain(norm.weight.data)
        and _is_plain(x)
        and x.numel() > 0
        and x.shape[-1] == norm.normalized_shape[0]
        and "forward" not in vars(norm)  # replaced by somebody else
    )


def _is_plain(x: torch.Tensor) -> bool:
    is_float = type(x) is torch.Tensor and x.device.type == "cpu" and x.dtype == torch.float32
    return is_float and x.is_contiguous()


def run(norm: Any, x: torch.Tensor) -> torch.Tensor:
    """The same values as `norm(x)`. Hooks of the module run, and see the kernel's output."""
    if not _has_hooks(norm):
        return rms_norm(x, norm.weight, norm.eps)
    # Hooks run in `nn.Module.__call__`, which looks up `forward` in the instance first. Without
    # the kernel, the output would differ in its last digits while attention is captured.
    norm.forward = lambda x: rms_norm(x, norm.weight, norm.eps)
    try:
        return norm(x)
    finally:
        vars(norm).pop("forward", None)


def _has_hooks(module: nn.Module) -> bool:
    """Whether a call of the module does more than its `forward`; the condition of torch."""
    modules = nn.modules.module
    return bool(
        module._forward_hooks
        or module._forward_pre_hooks
        or module._backward_hooks
        or module._backward_pre_hooks
        or modules._has_any_global_hook()
    )
