"""Kernel of max(x, 0)²: one pass over the data, forward and backward.

`use_kernel` (kernel_dispatch.py) calls `run` instead of `SquaredReLU.forward` (nn/activations.py)
if `supports` is True; `module` is the SquaredReLU instance.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from neural.nn.kernels._arrays import to_numba_arrays
from neural.nn.lazy_torch import torch

_njit_parallel: Any = numba.njit(
    parallel=True, fastmath={"reassoc", "contract", "nsz", "arcp"}, cache=True
)


@_njit_parallel
def _forward(x, out):  # noqa: ANN001, ANN202 (numba reads no annotations)
    for row in numba.prange(x.shape[0]):
        for i in range(x.shape[1]):
            value = max(x[row, i], np.float32(0))
            out[row, i] = value * value


@_njit_parallel
def _backward(x, grad_out, out):  # noqa: ANN001, ANN202
    """Writes the gradient of x to `out`."""
    for row in numba.prange(x.shape[0]):
        for i in range(x.shape[1]):
            out[row, i] = np.float32(2) * max(x[row, i], np.float32(0)) * grad_out[row, i]


def supports(module: Any, x: torch.Tensor) -> bool:
    """Whether `run` can compute a call.

    For contiguous 32-bit floats on the CPU with at least two axes, without tensor subclasses.
    """
    is_plain = type(x) is torch.Tensor and x.device.type == "cpu" and x.dtype == torch.float32
    return is_plain and x.ndim > 1 and x.numel() > 0 and x.is_contiguous()


def run(module: Any, x: torch.Tensor) -> torch.Tensor:
    """The same values as `SquaredReLU` in torch operations."""
    return _SquaredReLU.apply(x)


class _SquaredReLU(torch.autograd.Function):
    """The kernel with its gradient."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        out = torch.empty_like(x)
        _forward(*to_numba_arrays(x.flatten(0, -2), out.flatten(0, -2)))
        return out

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *grad_outputs: Any) -> Any:  # type: ignore[bad-override]  # the decorator hides the signature
        (x,) = ctx.saved_tensors
        out = torch.empty_like(x)
        tensors = (x, grad_outputs[0].contiguous(), out)
        _backward(*to_numba_arrays(*(tensor.flatten(0, -2) for tensor in tensors)))
        return out
