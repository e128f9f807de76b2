"""Kernel of max(x, 0)²: one pass over the data, forward and backward.

`use_kernel` (kernel_dispatch.py) calls `run` instead of `SquaredReLU.forward` (nn/activations.py)
if `supports` is True; `module` is the SquaredReLU instance. The loops are in
native/kernels/squared_relu.cpp.
"""

from __future__ import annotations

from typing import Any

from neural.native.library import NativeFunction
from neural.nn.kernels._operator import Operator
from neural.nn.lazy_torch import torch

_forward = NativeFunction("squared_relu_forward", "pp ii")
_backward = NativeFunction("squared_relu_backward", "ppp ii")


def _compute(x: torch.Tensor) -> torch.Tensor:
    """max(x, 0)² of contiguous 32-bit floats."""
    out = torch.empty_like(x)
    _forward(x.data_ptr(), out.data_ptr(), x.numel(), torch.get_num_threads())
    return out


def _compute_gradient(x: torch.Tensor, grad_out: torch.Tensor) -> torch.Tensor:
    """Gradient of x."""
    grad_x, grad_out = torch.empty_like(x), grad_out.contiguous()
    _backward(
        x.data_ptr(), grad_out.data_ptr(), grad_x.data_ptr(), x.numel(), torch.get_num_threads()
    )
    return grad_x


squared_relu = Operator(
    "squared_relu",
    _compute,
    torch.empty_like,
    _compute_gradient,
    lambda x, grad_out: torch.empty_like(x),
)


def supports(module: Any, x: torch.Tensor) -> bool:
    """Whether `run` can compute a call.

    For contiguous 32-bit floats on the CPU, without tensor subclasses.
    """
    is_plain = type(x) is torch.Tensor and x.device.type == "cpu" and x.dtype == torch.float32
    return is_plain and x.numel() > 0 and x.is_contiguous()


def run(module: Any, x: torch.Tensor) -> torch.Tensor:
    """The same values as `SquaredReLU` in torch operations."""
    return squared_relu(x)
