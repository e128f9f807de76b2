"""Segmenters side by side: no attention, self, localized, boundary-aware: score, time per epoch, memory, parameters.

    python benchmarks/segmentation_models.py [--seeds 3] [--quick] [--json]

The published configuration with 48 inputs (BiLSTM 128, attention 256 wide, 8 heads, window 7), trained on the embedded
handbook; every model in a process of its own, so that its memory is its own. Scores are those of the best epoch on
documents held out. "20,000" is one document of that many elements through the trained model: seconds, and the memory
that this took beyond what was there before.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import statistics
import tempfile
import time
from itertools import pairwise
from pathlib import Path

from measures import peak_so_far

LONG = 20_000
MODELS = {
    "no attention": {"attention_enabled": False},
    "self": {"attention_type": "self"},
    "localized": {"attention_type": "localized", "window_size": 7},
    "boundary_aware": {"attention_type": "boundary_aware"},
}


def measured(name: str, seed: int, epochs: int, *, long: bool) -> dict[str, float]:
    """Train one model, here; what it scored and what it took."""
    import numpy as np
    import torch

    from neural.digest import best
    from neural.experiments import best_model, made, new_run
    from neural.tasks.cutting.predicted import scores_of
    from neural.tasks.cutting.settings import SegmentationSettings
    from neural.tracking.run import Run
    from neural.training.engine import fit

    preset = "document_boundary_aware" if name == "boundary_aware" else "document_localized"
    task = made(
        SegmentationSettings.model_validate({
            "preset": preset, "data": "handbook", "model": MODELS[name], "tracking": {"track_every": 0},
            "training": {"epochs": epochs, "seed": seed},
        }),
        Path(),
    )  # fmt: skip
    before, per = peak_so_far(forget=True), task.experiment.training.validate_every or 1
    ends = [time.perf_counter()]
    with tempfile.TemporaryDirectory() as folder:
        run = new_run(task, Path(folder))
        fit(task, run, tell=lambda progress: ends.append(time.perf_counter()))
        found = best(Run.open(run.path))
        model = best_model(run.path, task)
    assert found is not None
    scores = {one: value for one, value in found.scores.items() if value is not None}
    steps = sorted(b - a for a, b in pairwise(ends))
    told = {
        "f1": scores["valid/f1"], "f1_within_1": scores["valid/f1_within_1"], "pk": scores["valid/pk"],
        "seconds": statistics.median(steps) * per,   # the median leaves validations and checkpoints out
        "megabytes": peak_so_far() - before, "parameters": sum(one.numel() for one in model.parameters()),
    }  # fmt: skip
    if long:
        x = np.random.default_rng(0).normal(size=(LONG, task.train[0].x.shape[1])).astype(np.float32)
        before, start = peak_so_far(forget=True), time.perf_counter()
        with torch.no_grad():
            scores_of(model, [x])
        told["long_seconds"] = time.perf_counter() - start
        told["long_megabytes"] = peak_so_far() - before
    return told


def in_a_process(*what, **more) -> dict[str, float]:
    """`measured`, in a new process."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(measured, what, more)


def table(seeds: int, epochs: int) -> dict[str, dict[str, float]]:
    """Every model: the mean over seeds; memory and the long document by the first seed."""
    rows = {}
    for name in MODELS:
        found = [in_a_process(name, seed, epochs, long=seed == 0) for seed in range(seeds)]
        rows[name] = found[0] | {key: statistics.mean(one[key] for one in found) for key in ("f1", "f1_within_1", "pk")}
        rows[name] |= {"seconds": min(one["seconds"] for one in found)}
        rows[name] |= {"f1_spread": statistics.stdev(one["f1"] for one in found) if seeds > 1 else 0.0}
    return rows


def shown(rows: dict[str, dict[str, float]]) -> str:
    """As text."""
    base = rows["self"]["seconds"]
    head = f"{'attention':16}{'F1':>15}{'F1 ±1':>8}{'Pk':>8}{'s/epoch':>9}{'/ self':>8}{'MB':>7}{'parameters':>12}" \
           f"{'20,000':>9}{'MB':>8}"
    lines = [head]
    for name, one in rows.items():
        lines.append(
            f"{name:16}{one['f1']:9.3f}±{one['f1_spread']:.3f}{one['f1_within_1']:8.3f}{one['pk']:8.3f}"
            f"{one['seconds']:9.2f}{one['seconds'] / base:8.2f}{one['megabytes']:7.0f}{one['parameters']:12,.0f}"
            f"{one['long_seconds']:7.2f} s{one['long_megabytes']:8.0f}"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="one seed, two epochs")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    result = table(1 if asked.quick else asked.seeds, 2 if asked.quick else 25)
    print(json.dumps(result) if asked.json else shown(result))
