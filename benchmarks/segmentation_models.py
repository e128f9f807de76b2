"""Segmenters with different attention: scores, time per epoch, memory, parameters.

    python benchmarks/segmentation_models.py [--seeds 3] [--quick] [--json]

The published configuration with 48 inputs (BiLSTM 128, attention 256 wide, 8 heads, window 7),
trained on the embedded handbook. Every model has its own process, so that its memory can be
measured. Scores are those of the best epoch on held-out documents. "20,000" is one document of
that many elements through the trained model: seconds and additional memory.
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

from measures import read_peak_memory

LONG_DOCUMENT_ELEMENTS = 20_000
MODELS = {
    "no attention": {"attention_enabled": False},
    "self": {"attention_type": "self"},
    "localized": {"attention_type": "localized", "window_size": 7},
    "boundary_aware": {"attention_type": "boundary_aware"},
}


def measure_model(name: str, seed: int, epochs: int, *, long: bool) -> dict[str, float]:
    """Train one model in this process; its scores, time and memory."""
    import numpy as np
    import torch

    from neural.findings.run_summary import find_best_validation
    from neural.runs.run import Run
    from neural.tasks.segmentation.inference import compute_logits
    from neural.tasks.segmentation.settings import SegmentationSettings
    from neural.training.engine import fit
    from neural.training.load_model import load_best_model
    from neural.training.load_task import create_task
    from neural.workflows.train import create_run

    preset = "document_boundary_aware" if name == "boundary_aware" else "document_localized"
    task = create_task(
        SegmentationSettings.model_validate(
            {
                "preset": preset,
                "data": "handbook",
                "model": MODELS[name],
                "tracking": {"track_every": 0},
                "training": {"epochs": epochs, "seed": seed},
            }
        ),
        Path(),
    )
    before = read_peak_memory(reset=True)
    steps_per_epoch = task.experiment.training.validate_every or 1
    ends = [time.perf_counter()]
    with tempfile.TemporaryDirectory() as folder:
        run = create_run(task, Path(folder))
        fit(task, run, on_step=lambda progress: ends.append(time.perf_counter()))
        best = find_best_validation(Run.open(run.path))
        model = load_best_model(run.path, task)
    assert best is not None
    scores = {metric: value for metric, value in best.scores.items() if value is not None}
    step_seconds = [end - start for start, end in pairwise(ends)]
    figures = {
        "f1": scores["valid/f1"],
        "f1_within_1": scores["valid/f1_within_1"],
        "pk": scores["valid/pk"],
        # the median excludes validations and checkpoints
        "seconds": statistics.median(step_seconds) * steps_per_epoch,
        "megabytes": read_peak_memory() - before,
        "parameters": sum(param.numel() for param in model.parameters()),
    }
    if long:
        size = (LONG_DOCUMENT_ELEMENTS, task.train[0].x.shape[1])
        x = np.random.default_rng(0).normal(size=size).astype(np.float32)
        before, start = read_peak_memory(reset=True), time.perf_counter()
        with torch.no_grad():
            compute_logits(model, [x])
        figures["long_seconds"] = time.perf_counter() - start
        figures["long_megabytes"] = read_peak_memory() - before
    return figures


def measure_in_new_process(*args, **kwargs) -> dict[str, float]:
    """`measure_model` in a new process."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(measure_model, args, kwargs)


def measure_models(seeds: int, epochs: int) -> dict[str, dict[str, float]]:
    """Mean scores over seeds for every model; memory and long document of the first seed."""
    rows = {}
    for name in MODELS:
        results = [
            measure_in_new_process(name, seed, epochs, long=seed == 0) for seed in range(seeds)
        ]
        rows[name] = results[0] | {
            key: statistics.mean(result[key] for result in results)
            for key in ("f1", "f1_within_1", "pk")
        }
        rows[name]["seconds"] = min(result["seconds"] for result in results)
        scores = [result["f1"] for result in results]
        rows[name]["f1_std"] = statistics.stdev(scores) if seeds > 1 else 0.0
    return rows


def format_rows(rows: dict[str, dict[str, float]]) -> str:
    """The rows as a table."""
    baseline = rows["self"]["seconds"]
    header = (
        f"{'attention':16}{'F1':>15}{'F1 ±1':>8}{'Pk':>8}{'s/epoch':>9}{'/ self':>8}{'MB':>7}"
        f"{'parameters':>12}{'20,000':>9}{'MB':>8}"
    )
    lines = [header]
    for name, row in rows.items():
        lines.append(
            f"{name:16}{row['f1']:9.3f}±{row['f1_std']:.3f}{row['f1_within_1']:8.3f}"
            f"{row['pk']:8.3f}{row['seconds']:9.2f}{row['seconds'] / baseline:8.2f}"
            f"{row['megabytes']:7.0f}{row['parameters']:12,.0f}"
            f"{row['long_seconds']:7.2f} s{row['long_megabytes']:8.0f}"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="one seed, two epochs")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = measure_models(1 if options.quick else options.seeds, 2 if options.quick else 25)
    print(json.dumps(rows) if options.json else format_rows(rows))
