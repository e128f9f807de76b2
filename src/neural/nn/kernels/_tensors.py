"""Tensors as native kernels read them: an address, and strides with neighbouring features."""

from __future__ import annotations

from neural.nn.lazy_torch import torch


def with_adjacent_features(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor itself if the features of a row are neighbours in memory, else a copy.

    The gradient of a sum is one number, expanded to all rows: then only one row is copied.
    """
    if tensor.stride(-1) == 1 or tensor.shape[-1] <= 1:
        return tensor
    if not any(tensor.stride()) and tensor.numel():
        return tensor[(0,) * (tensor.ndim - 1)].contiguous().expand(tensor.shape)
    return tensor.contiguous()


def strides_of(tensor: torch.Tensor) -> tuple[int, ...]:
    """Strides of all axes but the last, in elements."""
    return tensor.stride()[:-1]
