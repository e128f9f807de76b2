"""A layer made and fed, and what torch really computes and keeps: the measure of what a declaration predicts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from neural.language.layer import Layer
from neural.language.shapes import numbers
from neural.modules.late import torch

if TYPE_CHECKING:
    from torch import Tensor, UntypedStorage, nn

B = 2
Sizes = tuple[int, ...]


def batch(layer: Layer, shape: Sizes, *, seed: int = 0, device: str = "cpu") -> Tensor:
    """Two examples to feed a layer: token ids or numbers."""
    with torch.device("cpu"):
        torch.manual_seed(seed)
        ids = getattr(layer, "input_dim", 0) if layer.role == "embedding" else 0
        made = torch.randint(0, ids, (B, *shape)) if ids else torch.randn(B, *shape)
    return made.to(device)


def built(entry: type[Layer]) -> tuple[Layer, Sizes, nn.Module]:
    """A tiny layer, what it takes, and its module."""
    layer, shape = entry.tiny()
    torch.manual_seed(0)
    return layer, numbers(shape), layer.build(shape)


@contextmanager
def step_by_step() -> Iterator[None]:
    """Recurrence by single products: oneDNN's kernel hides them, and keeps a workspace of a fixed size."""
    switch: Any = torch.backends.mkldnn   # its own `flags` warn of Intel's GPUs
    before, switch.enabled = switch.enabled, False
    try:
        yield
    finally:
        switch.enabled = before


@contextmanager
def plain_kernels() -> Iterator[None]:
    """Attention and recurrence by single products, which torch's counters see; a fused kernel hides them."""
    with step_by_step(), torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        yield


def kept_numbers(module: nn.Module, x: Tensor) -> float:
    """32-bit floats that autograd keeps per example, with the result; not the parameters, not `x` itself."""
    own = [x, *module.parameters(), *module.buffers()]
    excluded = {one.untyped_storage().data_ptr() for one in own}
    kept: dict[int, UntypedStorage] = {}

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in excluded:
            kept[storage.data_ptr()] = storage   # held here, so that no address is used twice
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        keep(module(x))
    return sum(storage.nbytes() for storage in kept.values()) / 4 / x.shape[0]
