"""How long a training will take, from a few of its real steps."""

from __future__ import annotations

import heapq
import statistics
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from neural.experiments import new_run
from neural.modules.late import torch
from neural.samples import Judged, Samples
from neural.tasks.task import Task
from neural.training.engine import fit, steps_of

SHORT, LONG = 4, 40
"""Steps that are made to see how long they take; the long way where the short one took little."""
LITTLE = 6.0
"""Seconds."""
START = 6.0
"""Seconds until a process has brought in torch and made its first step; measured on two cores."""


@dataclass(frozen=True)
class Projection:
    """What was measured, and what follows."""

    step: float
    """Seconds."""
    look: float
    """Seconds of a look at the attention, a validation, samples and a checkpoint."""
    steps: int
    looks: int

    @property
    def seconds(self) -> float:
        """Of the whole training, in one process."""
        return START + self.steps * self.step + self.looks * self.look


def projected(task: Task, samples: Samples, every: int, *, threads: int) -> Projection:
    """Make the first steps of a training in a folder that goes away, with so many threads."""
    before, steps = torch.get_num_threads(), steps_of(task)
    torch.set_num_threads(threads)
    try:
        step, look = _measured(task, samples, SHORT)
        if SHORT * step + 2 * look < LITTLE:
            step, look = _measured(task, samples, LONG)
    finally:
        torch.set_num_threads(before)
    return Projection(step, look, steps, -(-steps // every))


def together(seconds: Sequence[float], workers: int) -> float:
    """Until all are done, where so many run at the same time, in their order."""
    free = [0.0] * workers
    for one in seconds:
        heapq.heappush(free, heapq.heappop(free) + one)
    return max(free)


def _measured(task: Task, samples: Samples, steps: int) -> tuple[float, float]:
    """Seconds of a plain step, and of what the last one had beside it."""
    half, times = steps // 2, [0.0]
    said = task.experiment
    training = said.training.model_copy(update={"steps": steps, "epochs": None, "validate_every": half})
    tracking = said.tracking.model_copy(update={"track_every": half, "sinks": ()})
    task.experiment = said.model_copy(update={"training": training, "tracking": tracking})
    try:
        with tempfile.TemporaryDirectory() as folder:
            run = new_run(task, Path(folder))
            judged = Judged(task, samples).kept_in(run)
            outcome = fit(task, run, tell=lambda progress: times.append(progress.seconds), also=judged)
    finally:
        task.experiment = said
    if outcome.state == "stopped":
        raise KeyboardInterrupt
    each = [after - before for before, after in pairwise(times)]
    plain = statistics.median(one for number, one in enumerate(each[1:], 2) if number % half)
    return plain, max(0.0, each[-1] - plain)
