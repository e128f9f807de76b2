"""Run folders with all data that a page can show."""

import numpy as np

from neural.capture.map_encoding import encode_map
from neural.core.settings import dump_settings
from neural.runs.run import Run
from neural.tasks.language_model.task import LanguageModel
from neural.tasks.segmentation.calibration_selection import RunCalibration, choose_calibration

NASTY = "<img src=x onerror=alert(1)>"
"""Used as a name: it must stay text wherever it is shown."""


def write_run(
    root,
    name="six",
    *,
    layers=6,
    heads=6,
    positions=17,
    snapshots=4,
    seed=0,
    nasty=False,
    calibrated=False,
    task=None,
):
    """Write a finished run: curves, a snapshot every 10 steps, maps, labels, samples."""
    own_settings = {
        "name": name,
        "data": "handbook",
        "training": {"steps": 10 * snapshots, "seed": seed},
    }
    settings = dump_settings(LanguageModel.Settings.model_validate(own_settings)) | (
        {"name": NASTY} if nasty else {}
    )
    settings |= {"task": task} if task else {}
    run = Run.create(
        root,
        name,
        settings=settings,
        program=None,
        environment={"python": "3.11", "command": ["neural"]},
    )
    random = np.random.default_rng(seed)
    paths = [f"{NASTY if nasty else 'decoder'}.{layer}.attention" for layer in range(layers)]
    run.set_metadata("steps", 10 * snapshots)
    run.set_metadata("parameters", 1234)
    run.set_metadata("attention/layers", paths)
    run.set_metadata("attention/heads", [heads] * layers)
    run.set_metadata(
        "attention/measures", {"entropy": {"unit": "nats", "description": "0 snapshots at one key"}}
    )
    run.set_metadata(
        "probe/labels",
        [
            [
                NASTY if nasty and position == 0 else chr(97 + position % 26)
                for position in range(positions)
            ]
        ],
    )
    run.set_metadata(
        "generation/samples",
        {str(10 * index): f"text {index} {NASTY if nasty else ''}" for index in range(snapshots)},
    )
    run.set_metadata("generation/real_text", {"generation/bits": 1.5})
    for step in range(1, 10 * snapshots + 1):
        run.log(step, {"train/loss": 3 / step + seed / 10})
    for index in range(snapshots):
        step = 10 * index
        run.log(step, {"valid/loss": 2.0 - 0.1 * index, "generation/bits": 3.0 - index / 10})
        run.log_arrays(
            step,
            {
                "entropy": random.random((layers, heads), np.float32),
                "span": random.random((layers, heads), np.float32),
                "head_diversity": random.random(layers, np.float32),
                "cosine_between": np.triu(random.random((layers, layers), np.float32), 1),
            },
        )
        run.log_maps(
            step,
            {
                path: encode_map(random_causal_maps(random, heads, positions), causal=True)
                for path in paths
            },
        )
    run.log_event(7, "warning", NASTY if nasty else "the seventh step was odd")
    run.heartbeat(10 * snapshots)
    run.finish("finished")
    if calibrated:
        scores = random.normal(size=240)
        truth = random.random(240) < 1 / (1 + np.exp(-2 * scores))
        choice = choose_calibration(scores, truth, np.arange(240) // 60, methods=["platt"])
        chosen = {"weights": "0", "data": "4 documents", "threshold": 0.25, "f1": 0.5}
        RunCalibration(boundary=choice, label=None, **chosen).save(run.path)
    # a copied run folder may have any name
    return run.path.rename(run.path.with_name(f"{NASTY} {seed}")) if nasty else run.path


def random_causal_maps(random, heads, positions):
    """Causal attention maps whose rows sum to 1."""
    weights = np.tril(random.random((heads, positions, positions)) ** 4 + 1e-3)
    return weights / weights.sum(axis=-1, keepdims=True)
