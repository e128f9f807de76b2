"""Kernel of query-key norm and rotary positions: one pass over the data, forward and backward.

`use_kernel` (kernel_dispatch.py) calls `run` instead of `normalize_and_rotate`
(nn/multi_head_attention.py) if `supports` is True. Both have its arguments: queries or keys `x`,
`offset` the position of the first of them, `position` the positional encoding, whether to
`normalize` each vector to length √D. The loops are in native/kernels/normalize_rotate.cpp.

Axes: B batch, H heads, T time, D head width, P = D / 2 pairs of features, or 0 without rotation.
"""

from __future__ import annotations

from functools import lru_cache

from neural.native.library import NativeFunction
from neural.nn.kernels._operator import Operator
from neural.nn.lazy_torch import torch
from neural.nn.position import AttentionPositions
from neural.nn.positions.rotary import RotaryPositions

_forward = NativeFunction("normalize_rotate_forward", "p iii ppp iiiii i f i")
_backward = NativeFunction("normalize_rotate_backward", "p iii pp p iii p iiiii i f i")


def _compute(
    x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, normalize: bool, epsilon: float
) -> torch.Tensor:
    """Normalized and rotated `x` (B, H, T, D); cos and sin are (T, P)."""
    x, out = _with_dense_features(x), _empty_result(x)
    B, H, T, D = x.shape
    _forward(
        x.data_ptr(),
        *_position_strides(x),
        cos.data_ptr(),
        sin.data_ptr(),
        out.data_ptr(),
        *(B, T, H, D, cos.shape[1]),
        normalize,
        epsilon,
        torch.get_num_threads(),
    )
    return out


def _compute_gradient(
    x: torch.Tensor,
    cos: torch.Tensor,
    sin: torch.Tensor,
    normalize: bool,
    epsilon: float,
    grad_out: torch.Tensor,
) -> torch.Tensor:
    """Gradient of x."""
    x, grad_out, grad_x = _with_dense_features(x), _with_dense_features(grad_out), _empty_result(x)
    B, H, T, D = x.shape
    _backward(
        x.data_ptr(),
        *_position_strides(x),
        cos.data_ptr(),
        sin.data_ptr(),
        grad_out.data_ptr(),
        *_position_strides(grad_out),
        grad_x.data_ptr(),
        *(B, T, H, D, cos.shape[1]),
        normalize,
        epsilon,
        torch.get_num_threads(),
    )
    return grad_x


def _with_dense_features(x: torch.Tensor) -> torch.Tensor:
    """A tensor whose features are next to each other in memory; a copy only if needed."""
    return x if x.stride(-1) == 1 else x.contiguous()


def _position_strides(x: torch.Tensor) -> tuple[int, int, int]:
    """Strides of example, position and head, the order of the axes in memory."""
    return x.stride(0), x.stride(2), x.stride(1)


def _empty_result(x: torch.Tensor) -> torch.Tensor:
    """An empty (B, H, T, D), in memory (B, T, H, D): so heads are joined without a copy."""
    B, H, T, D = x.shape
    return x.new_empty(B, T, H, D).transpose(1, 2)


normalize_rotate = Operator(
    "normalize_rotate",
    _compute,
    lambda x, *arguments: _empty_result(x),
    _compute_gradient,
    lambda x, *arguments: _empty_result(x),
)


def supports(
    x: torch.Tensor,
    offset: int,
    position: AttentionPositions | None,
    normalize: bool,
    epsilon: float,
) -> bool:
    """Whether `run` can compute a call: float32 (B, H, T, D) on the CPU, with norm or rotation."""
    is_plain = type(x) is torch.Tensor and x.device.type == "cpu" and x.dtype == torch.float32
    has_supported_position = position is None or isinstance(position, RotaryPositions)
    return (
        is_plain
        and has_supported_position
        and (normalize or position is not None)
        and x.ndim == 4
        and x.numel() > 0
        and (position is None or x.shape[-1] % 2 == 0)
    )


def run(
    x: torch.Tensor,
    offset: int,
    position: AttentionPositions | None,
    normalize: bool,
    epsilon: float,
) -> torch.Tensor:
    """The same values as `normalize_and_rotate`."""
    base = position.base if isinstance(position, RotaryPositions) else None
    cos, sin = _rotation_table(base, offset, x.shape[-2], x.shape[-1])
    return normalize_rotate(x, cos, sin, normalize, epsilon)


@lru_cache(maxsize=16)
def _rotation_table(
    base: float | None, offset: int, length: int, width: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Cosine and sine (T, P) of rotary positions, kept for the next layer and the next step.

    Without a base they have 0 pairs. Not in inference mode: its tensors cannot be saved for a later
    backward pass.
    """
    with torch.inference_mode(False), torch.no_grad():
        if base is None:
            empty = torch.empty(length, 0, device="cpu")
            return empty, empty
        like = torch.empty(1, 1, length, width, dtype=torch.float32, device="cpu")
        return RotaryPositions(base).cos_sin(like, offset)
