"""Copies of captured queries and keys, in memory of their own.

A capture stores a copy per attention call while the model runs. From the C library's heap, each
copy would lie between temporary tensors of the forward pass. When those are freed they leave gaps
that later, larger tensors do not fit into, so the process grows by more than the copies. Large
copies are therefore mapped directly from the operating system: the heap stays as it is without the
capture, and the memory returns to the system as soon as a copy is freed.
"""

from __future__ import annotations

import mmap
from typing import TYPE_CHECKING

from neural.nn.lazy_torch import torch

if TYPE_CHECKING:
    from torch import Tensor

MIN_MAPPED_BYTES = 2**20
"""Smaller copies come from the heap: their gaps are small, and a process has few mappings."""


def copy_tensor(tensor: Tensor) -> Tensor:
    """A contiguous copy without gradients; equal bit for bit."""
    tensor = tensor.detach()
    size = tensor.numel() * tensor.element_size()
    if not _is_plain(tensor) or tensor.device.type != "cpu" or size < MIN_MAPPED_BYTES:
        return tensor.clone(memory_format=torch.contiguous_format)
    copy = torch.frombuffer(_map_memory(size), dtype=tensor.dtype).view(tensor.shape)
    return copy.copy_(tensor)


def compact_tensor(tensor: Tensor) -> Tensor:
    """The tensor, or a copy if it is a view that keeps much more memory alive.

    Queries that are a slice of one projection to queries, keys and values keep all three alive.
    """
    tensor = tensor.detach()
    size = tensor.numel() * tensor.element_size()
    is_slice = _is_plain(tensor) and tensor.untyped_storage().nbytes() > size
    return copy_tensor(tensor) if is_slice else tensor


def _is_plain(tensor: Tensor) -> bool:
    """Whether it is an ordinary tensor; subclasses, such as sharded ones, have other storages."""
    return type(tensor) is torch.Tensor


def _map_memory(size: int) -> mmap.mmap:
    """Anonymous memory of this process; freed with the last tensor that uses it."""
    if hasattr(mmap, "MAP_PRIVATE"):  # not on Windows, where it is private in any case
        return mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    return mmap.mmap(-1, size)
