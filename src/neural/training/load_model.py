"""Load the trained model of a run folder, from its best or newest checkpoint.

The network comes from the run's `.neural` program if it has one, else from its task: that is the
kind of training, such as `language_model`, with data, model and loss (tasks/task.py).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from neural.core.diagnostics import SourceText
from neural.nn.build import build
from neural.nn.lazy_torch import torch
from neural.optim.catalogue import CATALOGUE
from neural.optim.program import check_program
from neural.runs.checkpoint import EMA_PREFIX, Checkpoint, check_network_match, select_weights
from neural.runs.errors import RunError
from neural.runs.run import Run
from neural.tasks import registry as tasks
from neural.tasks.task import Task
from neural.training.load_task import restore_experiment, restore_task

if TYPE_CHECKING:
    from torch import nn


def load_best_model(path: str | Path, task: Task | None = None) -> nn.Module:
    """The model of the run in `path` with its best weights, or the newest; in evaluation mode.

    `task` is that of the run, if the caller has loaded it: then it builds the model.
    """
    run = Run.open(path)
    checkpoint = run.load_checkpoint("best") or run.load_checkpoint()
    if checkpoint is None:
        raise RunError(f"{run.path} has no checkpoint yet")
    return load_model(run, checkpoint, task)


def load_model(run: Run, checkpoint: Checkpoint, task: Task | None = None) -> nn.Module:
    """The model of a run with the weights of a checkpoint, in evaluation mode.

    It is built by `task`, or without it from the run folder.
    """
    weight_count = sum(tensor.numel() for tensor in select_weights(checkpoint).values())
    model = task.build() if task is not None else build_untrained(run, weight_count)
    with check_network_match(checkpoint, run.path):
        load_weights(model, checkpoint)
    return model.eval()


def load_weights(model: nn.Module, checkpoint: Checkpoint) -> None:
    """Load a checkpoint's weights, the averaged (EMA) ones if it has them.

    RuntimeError if they do not match the model.
    """
    model.load_state_dict(select_weights(checkpoint))
    # only parameters are averaged; buffers come from the model itself
    model.load_state_dict(select_weights(checkpoint, EMA_PREFIX), strict=False)


def build_untrained(run: Run, max_parameters: int) -> nn.Module:
    """Build the untrained model of a run.

    The data may be gone, so they are read only if a task cannot build its model without them. A
    model with more than `max_parameters`, the size of the checkpoint, is refused before memory is
    allocated, because the folder may come from an untrusted source.
    """
    if run.program is not None:
        path = str(run.path / "program.neural")
        (network, *_) = check_program(SourceText(path, run.program), run.network_name).networks
        _check_parameter_count(run, network.cost.parameters, max_parameters)
        return build(network)
    experiment = restore_experiment(run)
    task_class = tasks.get(experiment.task)
    with torch.device("meta"):  # sizes only, no memory
        model = task_class.build_from_settings(experiment, CATALOGUE)
    if model is None:  # the settings alone are not enough
        return restore_task(run).build()
    count = sum(parameter.numel() for parameter in model.parameters())
    _check_parameter_count(run, count, max_parameters)
    model = task_class.build_from_settings(experiment, CATALOGUE)
    assert model is not None
    return model


def _check_parameter_count(run: Run, parameters: int, max_parameters: int) -> None:
    if parameters > max_parameters:
        raise RunError(
            f"{run.path}: its network has {parameters:,} parameters, "
            f"but its checkpoint {max_parameters:,} numbers"
        )
