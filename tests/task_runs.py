"""Run folders of any task, with random weights at every step, written without training."""

import torch

from neural.optim.catalogue import CATALOGUE
from neural.tasks import registry
from neural.workflows.train import create_run


def write_task_run(root, name, *, steps=(10,), change=None):
    """A run of the example of a task, with a checkpoint at each step; the last one is the best.

    `change(model, step)` may edit the weights. Returns the run folder.
    """
    root.mkdir(parents=True, exist_ok=True)
    task = registry.get(name).example(root, CATALOGUE)
    run = create_run(task, root)
    for key, value in task.metadata().items():
        run.set_metadata(key, value)
    for step in steps:
        torch.manual_seed(step)
        model = task.build()
        if change is not None:
            with torch.no_grad():
                change(model, step)
        weights = {f"model.{key}": tensor for key, tensor in model.state_dict().items()}
        run.save(step, weights, {}, best=step == steps[-1], keep=100)
    run.finish("finished")
    return run.path
