"""Run folders whose truth is known."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from neural.tracking.run import Run


def made_up(
    root: Path, seed: int, *, arrays: Mapping[str, np.ndarray] | None = None,
    scalars: Mapping[str, np.ndarray] | None = None, every: int = 50, settings: Mapping[str, Any] | None = None,
    state: str = "finished",
) -> Run:  # fmt: skip
    """A run that is over; the first axis of everything is the look, the first look at step `every`."""
    said = {"task": "language_model", "data": "handbook", "training": {"seed": seed}, **(settings or {})}
    run = Run.create(root, f"seed-{seed}", settings=said, program=None, environment={})
    for name, values in (arrays or {}).items():
        for look, one in enumerate(values, 1):
            run.log_arrays(look * every, {name: one})
    for name, values in (scalars or {}).items():
        for look, one in enumerate(values, 1):
            run.log(look * every, {name: float(one)})
    run.finish(state)
    return Run.open(run.path)


def several(root: Path, seeds: int, make: Any) -> list[Run]:
    """One run for each seed, of what `make(random)` gives: arrays and scalars by name."""
    return [made_up(root, seed, **make(np.random.default_rng(seed))) for seed in range(seeds)]


def pairs(layers: int, divergence: Any) -> np.ndarray:
    """[layer, layer] as a look writes it: `divergence(i, j)` where i < j, NaN elsewhere."""
    found = np.full((layers, layers), np.nan)
    for i in range(layers):
        for j in range(i + 1, layers):
            found[i, j] = divergence(i, j)
    return found
