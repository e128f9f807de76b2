"""Run folders of synthetic data, whose truth is known."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from neural.capture.map_encoding import encode_map
from neural.runs.run import Run


def write_synthetic_run(
    root: Path,
    seed: int,
    *,
    arrays: Mapping[str, np.ndarray] | None = None,
    scalars: Mapping[str, np.ndarray] | None = None,
    every: int = 50,
    settings: Mapping[str, Any] | None = None,
    state: str = "finished",
    maps: Sequence[np.ndarray] = (),
    labels: list[str] | None = None,
    tensors: Mapping[str, Any] | None = None,
    heads: list[int] | None = None,
    metadata: Mapping[str, Any] | None = None,
) -> Run:
    """Write a finished run. The first axis of all data is the snapshot, the first at step `every`.

    `maps` are causal, [layer, head, query, key], of one example; `tensors` are those of its only
    checkpoint.
    """
    run_settings = {
        "task": "language_model",
        "data": "handbook",
        "training": {"seed": seed},
        **(settings or {}),
    }
    run = Run.create(root, f"seed-{seed}", settings=run_settings, program=None, environment={})
    for name, values in (arrays or {}).items():
        for snapshot, array in enumerate(values, 1):
            run.log_arrays(snapshot * every, {name: array})
    for name, values in (scalars or {}).items():
        for snapshot, value in enumerate(values, 1):
            run.log(snapshot * every, {name: float(value)})
    num_layers, num_heads = next(
        (values.shape[1:] for values in (arrays or {}).values() if np.ndim(values) == 3), (0, 0)
    )
    for snapshot, layer_maps in enumerate(maps, 1):
        num_layers, num_heads = layer_maps.shape[:2]
        run.log_maps(
            snapshot * every,
            {
                f"layer.{layer}": encode_map(weights, causal=True)
                for layer, weights in enumerate(layer_maps)
            },
        )
    heads = [num_heads] * num_layers if heads is None else heads
    run.set_metadata("attention/layers", [f"layer.{layer}" for layer in range(len(heads))])
    run.set_metadata("attention/heads", heads)
    for key, value in (metadata or {}).items():
        run.set_metadata(key, value)
    if labels is not None:
        run.set_metadata("probe/labels", [labels])
    if tensors is not None:
        run.save(every, tensors, {}, best=True)
    run.finish(state)
    return Run.open(run.path)


def write_seeds(root: Path, seeds: int, create_data: Any) -> list[Run]:
    """Write one run per seed; `create_data(random)` returns arguments of `write_synthetic_run`."""
    return [
        write_synthetic_run(root, seed, **create_data(np.random.default_rng(seed)))
        for seed in range(seeds)
    ]


def create_head_divergence(heads: list[int], between: Any, *, within: float = 0.2) -> np.ndarray:
    """Divergence of all pairs of heads: `within` a layer; `between(i, j)` for two layers i < j."""
    layer = np.repeat(np.arange(len(heads)), heads)
    divergence = np.zeros((len(layer), len(layer)))
    for a in range(len(layer)):
        for b in range(a):
            i, j = sorted((int(layer[a]), int(layer[b])))
            divergence[a, b] = divergence[b, a] = within if i == j else between(i, j)
    return divergence
