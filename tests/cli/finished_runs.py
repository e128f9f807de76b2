"""Run folders for the commands that read them, written by `Run` as in training."""

from __future__ import annotations

import numpy as np

from neural.core.settings import dump_settings
from neural.runs.run import Run
from neural.tasks.supervised.task import SupervisedSettings

PROGRAM = """network Small {
  input: (5, 6)
  layers:
    Dense(6)
    GlobalAveragePooling1D()
    Output(3, activation="softmax")
  loss: "sparse_categorical_crossentropy"
}
"""
LAYERS = ["encoder.0.attention", "encoder.1.attention"]


def write_run(
    root, name="small", *, end="finished", scores=(0.9, 0.5, 0.6, 0.7), program=PROGRAM, **training
):
    """A run of 40 steps with some validations and three attention snapshots."""
    steps = 40
    settings = SupervisedSettings.model_validate(
        {
            "network": program,
            "data": "digits",
            "name": name,
            "training": {"steps": steps, **training},
        }
    )
    run = Run.create(
        root,
        name,
        settings=dump_settings(settings),
        program=program,
        environment={"folder": str(root)},
    )
    run.set_metadata("steps", steps)
    run.set_metadata("batches_per_epoch", 8.0)
    run.set_metadata("parameters", 63)
    run.set_metadata("attention/layers", LAYERS)
    run.set_metadata(
        "attention/measures", {"entropy": {"unit": "nats"}, "head_diversity": {"unit": "nats"}}
    )
    for step in range(1, steps + 1):
        run.log(step, {"train/loss": 2.0 / step})
    for index, score in enumerate(scores, start=1):
        run.log(index * steps // len(scores), {"valid/loss": score, "valid/accuracy": 1 - score})
    for step, entropy in ((0, 1.5), (20, 1.0), (40, 0.25)):
        arrays = {
            "entropy": np.array([[entropy, 1.5], [1.5, 1.5]]),
            "head_diversity": np.array([0.0, entropy]),
        }
        run.log_arrays(step, {name: array.astype(np.float32) for name, array in arrays.items()})
    run.log_event(7, "warning", "the seventh step was odd")
    run.heartbeat(steps)
    run.finish(end, "out of luck" if end == "failed" else "")
    return run.path
