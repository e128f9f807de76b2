"""Fixtures of the layer rules: example layers with inputs, and counters of torch's operations.

A layer is a declaration (arguments, output shape, cost); its `build` creates the torch module.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from neural.language.layer import Layer
from neural.language.shapes import require_known_sizes
from neural.nn.lazy_torch import torch

if TYPE_CHECKING:
    from torch import Tensor, UntypedStorage, nn

B = 2
"""Batch size of all test inputs."""
Sizes = tuple[int, ...]
"""Shape of one example, without the batch axis."""


def make_batch(layer: Layer, shape: Sizes, *, seed: int = 0, device: str = "cpu") -> Tensor:
    """A batch of B examples of `shape`: token ids for an embedding layer, else floats."""
    with torch.device("cpu"):
        torch.manual_seed(seed)
        vocabulary_size = getattr(layer, "input_dim", 0) if layer.role == "embedding" else 0
        batch = (
            torch.randint(0, vocabulary_size, (B, *shape))
            if vocabulary_size
            else torch.randn(B, *shape)
        )
    return batch.to(device)


def build_example(entry: type[Layer]) -> tuple[Layer, Sizes, nn.Module]:
    """The entry's example layer, its input shape and its module."""
    layer, shape = entry.example()
    torch.manual_seed(0)
    return layer, require_known_sizes(shape), layer.build(shape)


@contextmanager
def disable_mkldnn() -> Iterator[None]:
    """Run recurrent layers as separate matrix products.

    oneDNN's fused kernel hides the products from the FLOP counter, and saves a workspace of fixed
    size instead of activations.
    """
    backend: Any = torch.backends.mkldnn  # its own `flags()` prints a warning about Intel GPUs
    was_enabled, backend.enabled = backend.enabled, False
    try:
        yield
    finally:
        backend.enabled = was_enabled


@contextmanager
def use_math_kernels() -> Iterator[None]:
    """Run attention and recurrent layers as matrix products, which the FLOP counter sees."""
    with disable_mkldnn(), torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        yield


def count_saved_activations(module: nn.Module, x: Tensor) -> float:
    """Number of float32 values that autograd saves per example, including the output.

    Parameters, buffers and `x` itself do not count.
    """
    excluded_tensors = [x, *module.parameters(), *module.buffers()]
    excluded = {tensor.untyped_storage().data_ptr() for tensor in excluded_tensors}
    storages: dict[int, UntypedStorage] = {}

    def save(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in excluded:
            storages[storage.data_ptr()] = storage  # a reference keeps the address unique
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(save, lambda tensor: tensor):
        save(module(x))
    bytes_per_value = 4
    total_bytes = sum(storage.nbytes() for storage in storages.values())
    return total_bytes / bytes_per_value / x.shape[0]
