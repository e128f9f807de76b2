"""Small experiments for the tests of training."""

from pathlib import Path

import numpy as np

from neural.experiments import made, new_run
from neural.tasks.supervised import SupervisedSettings
from neural.tracking.run import Run

PROGRAM = """network Small {
  input: (5, 6)
  layers:
    Dense(12)
    TransformerEncoder(num_heads=3, d_model=12, dff=17, dropout_rate=0.2) * 2
    GlobalAveragePooling1D()
    Output(3, activation="softmax")
  loss: "sparse_categorical_crossentropy"
  optimizer: %s
}
"""


def experiment(folder: Path, *, optimizer: str = "AdamW(learning_rate=0.01)", tracking: dict | None = None, **training):
    """Which of three features is largest on average? 61 examples: no batch size divides them."""
    random = np.random.default_rng(0)
    x = random.normal(size=(61, 5, 6)).astype(np.float32)
    np.savez(folder / "data.npz", x=x, y=x[:, :, :3].mean(axis=1).argmax(axis=1))
    settings = {"steps": 12, "batch_size": 4, "validate_every": 5, **training}
    return SupervisedSettings.model_validate({
        "network": PROGRAM % optimizer, "data": str(folder / "data.npz"), "name": "small", "training": settings,
        "tracking": {"track_every": 4, "maps_every": 1, "probe_size": 2, **(tracking or {})},
    })  # fmt: skip


def small(folder: Path, **settings):
    """The task of it."""
    return made(experiment(folder, **settings), folder)


def begun(task, folder: Path) -> Run:
    """A run folder for it."""
    return new_run(task, folder / "runs")


def trace(path: Path) -> dict:
    """All that two runs of the same training must have in common."""
    run = Run.open(path)
    newest = run.restore()
    return {
        "rows": run.rows(),
        "measures": {name: [one.tobytes() for one in run.measure(name)] for name in run.measures()},
        "maps": {step: run.maps(step) for step in run.map_steps()},
        "checkpoints": [(one.step, one.best, one.facts) for one in run.checkpoints()],
        "step": newest.step,
        "facts": newest.facts,
        "tensors": {name: one.numpy().tobytes() for name, one in sorted(newest.tensors.items())},
    }
