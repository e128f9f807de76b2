"""Reads every declaration: arguments, shape, cost, advice. Run in a process of its own that must not import torch."""

from neural.contract.entries import registries


def read_all() -> int:
    """How many entries there were."""
    count = 0
    for registry in registries().values():
        for name in registry.names():
            made = registry.get(name).tiny()
            if isinstance(made, tuple):
                layer, shape = made
                layer.shape(shape), layer.cost(shape), list(layer.advice(shape))
            repr(made)
            count += 1
    return count
