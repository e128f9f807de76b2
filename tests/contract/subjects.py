"""The subjects of the contract: every entry of every registry that a program can name something from."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from neural.core.registry import Registry
from neural.language.layer import Layer
from neural.language.shapes import Shape
from neural.standard import CATALOGUE

B = 2


def registries() -> dict[str, Registry]:
    """By package: those of the catalogue, and those that the settings of their entries lead to."""
    found: dict[str, Registry] = {}
    waiting = [CATALOGUE.layers, CATALOGUE.losses, CATALOGUE.optimizers]
    while waiting:
        registry = waiting.pop()
        if registry.package in found:
            continue
        found[registry.package] = registry
        for name in registry.names():
            kinds = [one.kind for one in registry.get(name).settings().values()]
            waiting += [kind.registry for kind in kinds if hasattr(kind, "registry")]
    return found


def batch(layer: Layer, shape: Shape, *, seed: int = 0, device: str = "cpu") -> torch.Tensor:
    """Two examples to feed a layer: token ids or numbers."""
    with torch.device("cpu"):
        torch.manual_seed(seed)
        ids = layer.role == "embedding"
        made = torch.randint(0, layer.input_dim, (B, *shape)) if ids else torch.randn(B, *shape)
    return made.to(device)


def built(name: str, registry: Registry = CATALOGUE.layers) -> tuple[Layer, Shape, torch.nn.Module]:
    """A tiny layer, what it takes, and its module."""
    layer, shape = registry.get(name).tiny()
    torch.manual_seed(0)
    return layer, shape, layer.build(shape)


@contextmanager
def step_by_step() -> Iterator[None]:
    """Recurrence by single products: oneDNN's kernel hides them, and keeps a workspace of a fixed size."""
    before = torch.backends.mkldnn.enabled
    torch.backends.mkldnn.enabled = False
    try:
        yield
    finally:
        torch.backends.mkldnn.enabled = before


@contextmanager
def plain_kernels() -> Iterator[None]:
    """Attention and recurrence by single products, which torch's counters see; a fused kernel hides them."""
    with step_by_step(), torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        yield


def kept_numbers(module: torch.nn.Module, x: torch.Tensor) -> float:
    """32-bit floats that autograd keeps per example, with the result; not the parameters, not `x` itself."""
    own = [x, *module.parameters(), *module.buffers()]
    excluded = {one.untyped_storage().data_ptr() for one in own}
    kept: dict[int, torch.UntypedStorage] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in excluded:
            kept[storage.data_ptr()] = storage   # held here, so that no address is used twice
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        keep(module(x))
    return sum(storage.nbytes() for storage in kept.values()) / 4 / x.shape[0]
