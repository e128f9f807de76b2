"""Reads every declaration: arguments, shape, cost, advice. Run in a process of its own that must not import torch."""

from neural.standard import CATALOGUE


def read_all() -> int:
    """How many entries there were."""
    count, seen = 0, set()
    waiting = [CATALOGUE.layers, CATALOGUE.losses, CATALOGUE.optimizers]
    while waiting:
        registry = waiting.pop()
        if registry.package in seen:
            continue
        seen.add(registry.package)
        for name in registry.names():
            entry = registry.get(name)
            made = entry.tiny()
            if isinstance(made, tuple):
                layer, shape = made
                layer.shape(shape), layer.cost(shape), list(layer.advice(shape))
            repr(made)
            waiting += [one.kind.registry for one in entry.settings().values() if hasattr(one.kind, "registry")]
            count += 1
    return count
