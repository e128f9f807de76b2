"""A small experiment for the tests of training."""

from pathlib import Path

import numpy as np

from neural.runs.run import Run
from neural.tasks.supervised.task import SupervisedSettings
from neural.tasks.task import Task
from neural.training.load_task import create_task
from neural.workflows.train import create_run

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


def create_small_experiment(
    folder: Path,
    *,
    optimizer: str = "AdamW(learning_rate=0.01)",
    tracking: dict | None = None,
    **training,
) -> SupervisedSettings:
    """Which of three features is largest on average? 61 examples: no batch size divides them."""
    random = np.random.default_rng(0)
    x = random.normal(size=(61, 5, 6)).astype(np.float32)
    np.savez(folder / "data.npz", x=x, y=x[:, :, :3].mean(axis=1).argmax(axis=1))
    settings = {"steps": 12, "batch_size": 4, "validate_every": 5, **training}
    return SupervisedSettings.model_validate(
        {
            "network": PROGRAM % optimizer,
            "data": str(folder / "data.npz"),
            "name": "small",
            "training": settings,
            "tracking": {"track_every": 4, "maps_every": 1, "probe_size": 2, **(tracking or {})},
        }
    )


def create_small_task(folder: Path, **settings) -> Task:
    """The task of the small experiment."""
    return create_task(create_small_experiment(folder, **settings), folder)


def create_small_run(task: Task, folder: Path) -> Run:
    """A run folder of a task."""
    return create_run(task, folder / "runs")


def read_run_contents(path: Path) -> dict:
    """Everything that two runs of the same training must have in common."""
    run = Run.open(path)
    newest = run.load_checkpoint()
    return {
        "rows": run.scalar_rows(),
        "measures": {
            name: [array.tobytes() for array in run.measure(name)] for name in run.measure_names()
        },
        "maps": {step: run.maps(step) for step in run.map_steps()},
        "checkpoints": [(info.step, info.is_best, info.metadata) for info in run.checkpoints()],
        "step": newest.step,
        "metadata": newest.metadata,
        "tensors": {
            name: tensor.numpy().tobytes() for name, tensor in sorted(newest.tensors.items())
        },
    }
