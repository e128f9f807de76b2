"""Queries or keys brought to one length and turned by their positions, in one pass over them each way."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from neural.modules.kernels.arrays import arrays
from neural.modules.late import torch
from neural.modules.position import InsideAttention
from neural.modules.positions.rotary import RotaryPositions

_fast: Any = numba.njit(parallel=True, fastmath={"reassoc", "contract", "nsz", "arcp"}, cache=True)


@_fast
def _forward(x, cos, sin, normed, epsilon, out):  # noqa: ANN001, ANN202 (numba reads no annotations)
    """x (example, position, head, feature); of `cos` and `sin` (position, pair) there are no pairs if nothing turns."""
    examples, time, heads, width = x.shape
    half, pairs = width // 2, cos.shape[1]
    for place in numba.prange(examples * time):
        b, t = place // time, place % time
        for h in range(heads):
            given, made = x[b, t, h], out[b, t, h]
            factor = np.float32(1)
            if normed:
                square = np.float32(0)
                for d in range(width):
                    square += given[d] * given[d]
                factor = np.float32(1) / np.sqrt(square / np.float32(width) + epsilon)
            if pairs == 0:
                for d in range(width):
                    made[d] = given[d] * factor
            for d in range(pairs):
                left, right = given[d] * factor, given[d + half] * factor
                made[d] = left * cos[t, d] - right * sin[t, d]
                made[d + half] = left * sin[t, d] + right * cos[t, d]


@_fast
def _backward(x, cos, sin, normed, epsilon, given, out):  # noqa: ANN001, ANN202
    examples, time, heads, width = x.shape
    half, pairs = width // 2, cos.shape[1]
    for place in numba.prange(examples * time):
        b, t = place // time, place % time
        for h in range(heads):
            was, towards, made = x[b, t, h], given[b, t, h], out[b, t, h]
            if pairs == 0:
                for d in range(width):
                    made[d] = towards[d]
            for d in range(pairs):   # turned back
                made[d] = towards[d] * cos[t, d] + towards[d + half] * sin[t, d]
                made[d + half] = towards[d + half] * cos[t, d] - towards[d] * sin[t, d]
            if normed:
                square, along = np.float32(0), np.float32(0)
                for d in range(width):
                    square += was[d] * was[d]
                    along += was[d] * made[d]
                factor = np.float32(1) / np.sqrt(square / np.float32(width) + epsilon)
                share = along * factor * factor / np.float32(width)
                for d in range(width):
                    made[d] = factor * (made[d] - was[d] * share)


def fits(x: torch.Tensor, first: int, position: InsideAttention | None, normed: bool, epsilon: float) -> bool:
    """32-bit floats on the CPU, laid out as the projections leave them, outside of any transform."""
    plain = type(x) is torch.Tensor and x.device.type == "cpu" and x.dtype == torch.float32
    turned = position is None or isinstance(position, RotaryPositions)
    return plain and turned and (normed or position is not None) and x.transpose(1, 2).is_contiguous()


def run(x: torch.Tensor, first: int, position: InsideAttention | None, normed: bool, epsilon: float) -> torch.Tensor:
    """The same as the plain way."""
    if isinstance(position, RotaryPositions):
        cos, sin = position.angles(x, first)
    else:
        cos = sin = x.new_empty(x.shape[-2], 0)
    return _Placed.apply(x, cos, sin, normed, epsilon)


class _Placed(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, cos: Any, sin: Any, normed: bool, epsilon: float) -> Any:
        ctx.save_for_backward(x, cos, sin)
        ctx.settings = normed, np.float32(epsilon)
        out = torch.empty_like(x)   # with the same strides
        inputs = arrays(x.transpose(1, 2), cos, sin)
        _forward(*inputs, *ctx.settings, *arrays(out.transpose(1, 2)))
        return out

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *grad_outputs: Any) -> Any:  # type: ignore[bad-override]  # the decorator hides its names
        x, cos, sin = ctx.saved_tensors
        out = torch.empty_like(x)
        given = grad_outputs[0].transpose(1, 2).contiguous()
        inputs = arrays(x.transpose(1, 2), cos, sin)
        _backward(*inputs, *ctx.settings, *arrays(given, out.transpose(1, 2)))
        return out, None, None, None, None
