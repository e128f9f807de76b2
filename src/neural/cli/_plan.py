"""What training would do, before it does it."""

from __future__ import annotations

from typing import Any

from neural.tasks.task import Task


def planned(task: Task) -> dict[str, Any]:
    """The network, the data, how long, and what it costs."""
    from neural.tasks.experiment import world_size
    from neural.training.engine import steps_of
    from neural.training.rates import optimizer_of, share_of

    settings, tracking = task.experiment.training, task.experiment.tracking
    steps = steps_of(task, world_size())
    rate, _ = share_of(settings, optimizer_of(settings), steps)
    together = settings.batch_size * settings.batches_per_step
    network: Any = getattr(task, "network", None)
    cost = {} if network is None else {
        "network": network.name, "parameters": network.cost.parameters,
        "gflop": 3 * 2 * network.cost.multiply_adds * together / 1e9, "examples": together,
        "megabytes": _megabytes(network.cost, settings.batch_size),
    }  # fmt: skip
    return {
        "name": task.experiment.name or task.experiment.task, "task": task.experiment.task, **cost,
        "epoch": task.epoch, "batch_size": settings.batch_size, "steps": steps,
        "passes": steps * settings.batches_per_step / max(1, task.epoch),
        "optimizer": settings.optimizer,
        "rate": rate, "scheduler": settings.scheduler, "track_every": tracking.track_every,
        "remarks": list(task.remarks),
    }  # fmt: skip


def plan(task: Task) -> str:
    """The same, to be read."""
    of = planned(task)
    lines = [f"{of['name']}: {of['task']}"]
    if "network" in of:
        lines += [
            f"  network      {of['network']}, {of['parameters']:,} parameters",
            f"  a step       {of['gflop']:,.2f} GFLOP (forward and backward, {of['examples']} examples)",
            f"  memory       about {of['megabytes']:,.0f} MB (weights, gradients, optimizer, activations)",
        ]
    lines += [
        f"  data         {of['epoch']:,} batches of {of['batch_size']} go once through it",
        f"  steps        {of['steps']:,}, {of['passes']:.1f} passes",
        "  optimizer    " + ", ".join(filter(None, (of["optimizer"], f"peak rate {of['rate']:g}", of["scheduler"]))),
        "  attention    " + (f"looked at every {of['track_every']} steps" if of["track_every"] else "not looked at"),
    ]
    lines += [f"  note         {remark}" for remark in of["remarks"]]
    return "\n".join([*lines, "nothing was written (--dry-run)"])


def _megabytes(cost: Any, batch: int) -> float:
    return 4 * (4 * cost.parameters + batch * cost.activations) / 1e6
