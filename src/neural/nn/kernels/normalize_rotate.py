"""Kernel of query-key norm and rotary positions: one pass over the data, forward and backward.

`use_kernel` (kernel_dispatch.py) calls `run` instead of `normalize_and_rotate`
(nn/multi_head_attention.py) if `supports` is True. Both have its arguments: queries or keys `x`,
`offset` the position of the first of them, `position` the positional encoding, whether to
`normalize` each vector to length √D.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from neural.nn.kernels._arrays import to_numba_arrays
from neural.nn.lazy_torch import torch
from neural.nn.position import AttentionPositions
from neural.nn.positions.rotary import RotaryPositions

_njit_parallel: Any = numba.njit(
    parallel=True, fastmath={"reassoc", "contract", "nsz", "arcp"}, cache=True
)


@_njit_parallel
def _forward(x, cos, sin, normalize, epsilon, out):  # noqa: ANN001, ANN202 (numba reads no annotations)
    """Normalized and rotated `x`, written to `out`; both (example, position, head, feature).

    cos and sin are (position, pair); with 0 pairs there is no rotation.
    """
    examples, time, heads, width = x.shape
    half, pairs = width // 2, cos.shape[1]
    for task in numba.prange(examples * time):
        b, t = task // time, task % time
        for h in range(heads):
            vector, result = x[b, t, h], out[b, t, h]
            factor = np.float32(1)
            if normalize:
                square = np.float32(0)
                for d in range(width):
                    square += vector[d] * vector[d]
                factor = np.float32(1) / np.sqrt(square / np.float32(width) + epsilon)
            if pairs == 0:
                for d in range(width):
                    result[d] = vector[d] * factor
            for d in range(pairs):
                left, right = vector[d] * factor, vector[d + half] * factor
                result[d] = left * cos[t, d] - right * sin[t, d]
                result[d + half] = left * sin[t, d] + right * cos[t, d]


@_njit_parallel
def _backward(x, cos, sin, normalize, epsilon, grad_out, out):  # noqa: ANN001, ANN202
    """Writes the gradient of x to `out`; other arguments as in `_forward`."""
    examples, time, heads, width = x.shape
    half, pairs = width // 2, cos.shape[1]
    for task in numba.prange(examples * time):
        b, t = task // time, task % time
        for h in range(heads):
            vector, grad, result = x[b, t, h], grad_out[b, t, h], out[b, t, h]
            if pairs == 0:
                for d in range(width):
                    result[d] = grad[d]
            for d in range(pairs):  # the inverse rotation
                result[d] = grad[d] * cos[t, d] + grad[d + half] * sin[t, d]
                result[d + half] = grad[d + half] * cos[t, d] - grad[d] * sin[t, d]
            if normalize:
                # Gradient of the RMS norm: removes the component along the vector, whose length
                # does not affect the output.
                square, dot = np.float32(0), np.float32(0)
                for d in range(width):
                    square += vector[d] * vector[d]
                    dot += vector[d] * result[d]
                factor = np.float32(1) / np.sqrt(square / np.float32(width) + epsilon)
                projection = dot * factor * factor / np.float32(width)
                for d in range(width):
                    result[d] = factor * (result[d] - vector[d] * projection)


def supports(
    x: torch.Tensor,
    offset: int,
    position: AttentionPositions | None,
    normalize: bool,
    epsilon: float,
) -> bool:
    """Whether `run` can compute a call.

    For float32 on the CPU; x (B, H, T, D) must be a transposed view of a contiguous (B, T, H, D).
    """
    is_plain = type(x) is torch.Tensor and x.device.type == "cpu" and x.dtype == torch.float32
    has_supported_position = position is None or isinstance(position, RotaryPositions)
    return (
        is_plain
        and has_supported_position
        and (normalize or position is not None)
        and x.transpose(1, 2).is_contiguous()
    )


def run(
    x: torch.Tensor,
    offset: int,
    position: AttentionPositions | None,
    normalize: bool,
    epsilon: float,
) -> torch.Tensor:
    """The same values as `normalize_and_rotate`."""
    if isinstance(position, RotaryPositions):
        cos, sin = position.cos_sin(x, offset)
    else:
        cos = sin = x.new_empty(x.shape[-2], 0)
    return _NormalizeRotate.apply(x, cos, sin, normalize, epsilon)


class _NormalizeRotate(torch.autograd.Function):
    """The kernel with its gradient for x."""

    @staticmethod
    def forward(ctx: Any, x: Any, cos: Any, sin: Any, normalize: bool, epsilon: float) -> Any:
        ctx.save_for_backward(x, cos, sin)
        ctx.settings = normalize, np.float32(epsilon)
        out = torch.empty_like(x)  # with the same strides
        inputs = to_numba_arrays(x.transpose(1, 2), cos, sin)
        _forward(*inputs, *ctx.settings, *to_numba_arrays(out.transpose(1, 2)))
        return out

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *grad_outputs: Any) -> Any:  # type: ignore[bad-override]  # the decorator hides the signature
        x, cos, sin = ctx.saved_tensors
        out = torch.empty_like(x)
        grad_out = grad_outputs[0].transpose(1, 2).contiguous()
        inputs = to_numba_arrays(x.transpose(1, 2), cos, sin)
        _backward(*inputs, *ctx.settings, *to_numba_arrays(grad_out, out.transpose(1, 2)))
        return out, None, None, None, None
