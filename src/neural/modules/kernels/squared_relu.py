"""max(x, 0)², in one pass over the numbers each way."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from neural.modules.kernels.arrays import arrays
from neural.modules.late import torch

_fast: Any = numba.njit(parallel=True, fastmath={"reassoc", "contract", "nsz", "arcp"}, cache=True)


@_fast
def _forward(x, out):  # noqa: ANN001, ANN202 (numba reads no annotations)
    for row in numba.prange(x.shape[0]):
        for i in range(x.shape[1]):
            value = max(x[row, i], np.float32(0))
            out[row, i] = value * value


@_fast
def _backward(x, given, out):  # noqa: ANN001, ANN202
    for row in numba.prange(x.shape[0]):
        for i in range(x.shape[1]):
            out[row, i] = np.float32(2) * max(x[row, i], np.float32(0)) * given[row, i]


def fits(module: Any, x: torch.Tensor) -> bool:
    """Rows of 32-bit floats on the CPU, outside of any transform."""
    plain = type(x) is torch.Tensor and x.device.type == "cpu" and x.dtype == torch.float32
    return plain and x.ndim > 1 and x.numel() > 0 and x.is_contiguous()


def run(module: Any, x: torch.Tensor) -> torch.Tensor:
    """The same as the plain way."""
    return _SquaredReLU.apply(x)


class _SquaredReLU(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        out = torch.empty_like(x)
        _forward(*arrays(x.flatten(0, -2), out.flatten(0, -2)))
        return out

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *grad_outputs: Any) -> Any:  # type: ignore[bad-override]  # the decorator hides its names
        (x,) = ctx.saved_tensors
        out = torch.empty_like(x)
        _backward(*arrays(*(one.flatten(0, -2) for one in (x, grad_outputs[0].contiguous(), out))))
        return out
