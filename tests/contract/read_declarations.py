"""Read every declaration: arguments, shape, cost, advice. Runs in a process without torch."""

from neural.testing.entry_rules import find_registries


def read_all() -> int:
    """Read all entries of all registries; return their number."""
    count = 0
    for registry in find_registries().values():
        for name in registry.names():
            example = registry.get(name).example()
            if isinstance(example, tuple):
                layer, shape = example
                layer.shape(shape), layer.cost(shape), list(layer.advice(shape))
            repr(example)
            count += 1
    return count
