"""Run folders whose truth is known."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from neural.tracking.quantised import pack
from neural.tracking.run import Run


def made_up(
    root: Path, seed: int, *, arrays: Mapping[str, np.ndarray] | None = None,
    scalars: Mapping[str, np.ndarray] | None = None, every: int = 50, settings: Mapping[str, Any] | None = None,
    state: str = "finished", maps: Sequence[np.ndarray] = (), labels: list[str] | None = None,
    tensors: Mapping[str, Any] | None = None, heads: list[int] | None = None,
) -> Run:  # fmt: skip
    """A run that is over; the first axis of everything is the look, the first look at step `every`.

    `maps` are causal ones, [layer, head, query, key], of one example; `tensors` are those of its only checkpoint.
    """
    said = {"task": "language_model", "data": "handbook", "training": {"seed": seed}, **(settings or {})}
    run = Run.create(root, f"seed-{seed}", settings=said, program=None, environment={})
    for name, values in (arrays or {}).items():
        for look, one in enumerate(values, 1):
            run.log_arrays(look * every, {name: one})
    for name, values in (scalars or {}).items():
        for look, one in enumerate(values, 1):
            run.log(look * every, {name: float(one)})
    layers, each = next((one.shape[1:] for one in (arrays or {}).values() if np.ndim(one) == 3), (0, 0))
    for look, one in enumerate(maps, 1):
        layers, each = one.shape[:2]
        run.log_maps(look * every, {f"layer.{at}": pack(layer, causal=True) for at, layer in enumerate(one)})
    heads = [each] * layers if heads is None else heads
    run.describe("attention/layers", [f"layer.{at}" for at in range(len(heads))])
    run.describe("attention/heads", heads)
    if labels is not None:
        run.describe("probe/labels", [labels])
    if tensors is not None:
        run.save(every, tensors, {}, best=True)
    run.finish(state)
    return Run.open(run.path)


def several(root: Path, seeds: int, make: Any) -> list[Run]:
    """One run for each seed, of what `make(random)` gives: arrays and scalars by name."""
    return [made_up(root, seed, **make(np.random.default_rng(seed))) for seed in range(seeds)]


def between_heads(heads: list[int], between: Any, *, within: float = 0.2) -> np.ndarray:
    """Divergences of all pairs of heads: `within` inside a layer, `between(i, j)` for heads of two layers, i < j."""
    layer = np.repeat(np.arange(len(heads)), heads)
    found = np.zeros((len(layer), len(layer)))
    for a in range(len(layer)):
        for b in range(a):
            i, j = sorted((int(layer[a]), int(layer[b])))
            found[a, b] = found[b, a] = within if i == j else between(i, j)
    return found
