"""What training would do, before it does it."""

from __future__ import annotations

from typing import Any

from neural.tasks.task import Task


def plan(task: Task) -> str:
    """The network, the data, how long, and what it costs."""
    from neural.training.engine import steps_of
    from neural.training.rates import optimizer_of, share_of

    settings, tracking = task.experiment.training, task.experiment.tracking
    steps = steps_of(task)
    rate, _ = share_of(settings, optimizer_of(settings), steps)
    together = settings.batch_size * settings.gradient_accumulation_steps
    lines = [f"{task.experiment.name or task.experiment.task}: {task.experiment.task}"]
    network: Any = getattr(task, "network", None)
    if network is not None:
        cost = network.cost
        lines += [
            f"  network      {network.name}, {cost.parameters:,} parameters",
            f"  a step       {3 * 2 * cost.multiply_adds * together / 1e9:,.2f} GFLOP (forward and backward, "
            f"{together} examples)",
            f"  memory       about {_megabytes(cost, settings.batch_size):,.0f} MB "
            "(weights, gradients, optimizer, activations)",
        ]  # fmt: skip
    lines += [
        f"  data         {task.epoch:,} batches of {settings.batch_size} go once through it",
        f"  steps        {steps:,}, {steps * settings.gradient_accumulation_steps / max(1, task.epoch):.1f} passes",
        f"  optimizer    {settings.optimizer}, peak rate {rate:g}"
        + (f", {settings.scheduler}" if settings.scheduler else ""),
        f"  attention    looked at every {tracking.track_every} steps" if tracking.track_every else
        "  attention    not looked at",
    ]  # fmt: skip
    lines += [f"  note         {remark}" for remark in task.remarks]
    return "\n".join([*lines, "nothing was written (--dry-run)"])


def _megabytes(cost: Any, batch: int) -> float:
    return 4 * (4 * cost.parameters + batch * cost.activations) / 1e6
