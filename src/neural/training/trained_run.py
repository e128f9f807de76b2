"""A run folder as its task reads it for predictions, evaluations and text generation.

A run is the folder of one training. Its task is the kind of training, such as `language_model`: a
class that has data, model and loss (tasks/task.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from neural.core.diagnostics import SourceText
from neural.core.experiment import Experiment
from neural.language.network import Network
from neural.optim.program import check_program
from neural.runs.errors import RunError
from neural.runs.run import Run
from neural.tasks.task import Task
from neural.training.load_model import load_best_model
from neural.training.load_task import read_task_name, restore_experiment, restore_task

if TYPE_CHECKING:
    from torch import nn


class TrainedRunFolder:
    """A run folder with what tasks read of it: the protocol `TrainedRun` of tasks/task.py."""

    def __init__(self, run: Run) -> None:
        self.run = run

    @property
    def name(self) -> str:
        """The folder's name."""
        return self.run.name

    @property
    def path(self) -> Path:
        """The folder."""
        return self.run.path

    @property
    def settings(self) -> Mapping[str, Any]:
        """The settings of the experiment."""
        return self.run.settings

    @property
    def task_name(self) -> str:
        """Name of the run's task, such as `language_model`. RunError if the settings have none."""
        return read_task_name(self.run)

    def metadata(self, key: str, default: Any = None) -> Any:
        """The value of `key` in the metadata that the task saved with the run."""
        return self.run.metadata(key, default)

    @property
    def working_folder(self) -> Path:
        """The folder that the training was started in."""
        return Path(str(self.run.environment.get("folder", ".")))

    def scalars(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """(steps, values) of a metric; empty if it was not logged."""
        if name not in self.run.scalar_names():
            return np.empty(0, dtype=np.int64), np.empty(0)
        return self.run.scalars(name)

    def load_experiment(self) -> Experiment:
        """The settings of the run, checked."""
        return restore_experiment(self.run)

    def load_network(self) -> Network:
        """The checked network of the run's program."""
        if self.run.program is None:
            raise RunError(f"{self.run.name} has no `.neural` program, so its inputs are unknown")
        path = str(self.run.path / "program.neural")
        source = SourceText(path, self.run.program)
        return check_program(source, self.run.network_name).networks[0]

    def load_model(self) -> nn.Module:
        """The model with its best weights."""
        return load_best_model(self.run.path)

    def load_task(self) -> Task:
        """The task with its data."""
        return restore_task(self.run)

    def best_checkpoint(self) -> str:
        """Name of the checkpoint that `load_model` loads: "step 500", or "none"."""
        checkpoints = self.run.checkpoints()
        best = next((info for info in reversed(checkpoints) if info.is_best), None)
        loaded = best or (checkpoints[-1] if checkpoints else None)
        return "none" if loaded is None else f"step {loaded.step}"
