"""Estimate the duration of a training from a few of its real steps."""

from __future__ import annotations

import heapq
import statistics
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from neural.nn.lazy_torch import torch
from neural.tasks.task import Task
from neural.training.engine import count_steps, fit
from neural.workflows.samples import SampleEvaluator, SampleSettings
from neural.workflows.train import create_run

SHORT_TRIAL_STEPS, LONG_TRIAL_STEPS = 4, 40
"""Steps that are trained and timed; the long trial runs only if the short one was quick."""
MAX_SHORT_TRIAL_SECONDS = 6.0
"""A short trial quicker than this is followed by a long one."""
STARTUP_SECONDS = 6.0
"""Seconds to import torch and make the first step; measured on two cores."""


@dataclass(frozen=True)
class TimeEstimate:
    """Measured times, and the total that follows."""

    step_seconds: float
    evaluation_seconds: float
    """Seconds of one evaluation: attention snapshot, validation, generated texts, checkpoint."""
    steps: int
    """Optimizer steps of the complete training."""
    evaluations: int
    """Number of evaluations in the complete training."""

    @property
    def total_seconds(self) -> float:
        """Seconds of the whole training in one process."""
        return (
            STARTUP_SECONDS
            + self.steps * self.step_seconds
            + self.evaluations * self.evaluation_seconds
        )


def estimate_training_time(
    task: Task, samples: SampleSettings, evaluate_every: int, *, threads: int
) -> TimeEstimate:
    """Time the first steps of a training in a temporary folder, with `threads` threads.

    `samples` are the settings of texts that are generated at each evaluation, `evaluate_every` the
    steps between two evaluations.
    """
    previous_threads, steps = torch.get_num_threads(), count_steps(task)
    torch.set_num_threads(threads)
    try:
        step, evaluation = _measure_steps(task, samples, SHORT_TRIAL_STEPS)
        if SHORT_TRIAL_STEPS * step + 2 * evaluation < MAX_SHORT_TRIAL_SECONDS:
            step, evaluation = _measure_steps(task, samples, LONG_TRIAL_STEPS)
    finally:
        torch.set_num_threads(previous_threads)
    return TimeEstimate(step, evaluation, steps, -(-steps // evaluate_every))


def estimate_parallel_time(seconds: Sequence[float], workers: int) -> float:
    """Seconds until all jobs are done, started in order, with `workers` at a time.

    `seconds` has the duration of each job.
    """
    finish_times = [0.0] * workers
    for duration in seconds:
        heapq.heappush(finish_times, heapq.heappop(finish_times) + duration)
    return max(finish_times)


def _measure_steps(task: Task, samples: SampleSettings, steps: int) -> tuple[float, float]:
    """(seconds of a plain step, extra seconds of a step with an evaluation), over `steps` steps.

    Evaluations follow the middle step and the last one.
    """
    half, times = steps // 2, [0.0]
    experiment = task.experiment
    training = experiment.training.model_copy(
        update={"steps": steps, "epochs": None, "validate_every": half}
    )
    tracking = experiment.tracking.model_copy(update={"track_every": half, "sinks": ()})
    task.experiment = experiment.model_copy(update={"training": training, "tracking": tracking})
    try:
        with tempfile.TemporaryDirectory() as folder:
            run = create_run(task, Path(folder))
            evaluator = SampleEvaluator(task, samples).record_to(run)
            result = fit(
                task,
                run,
                on_step=lambda progress: times.append(progress.seconds),
                extra_metrics=evaluator,
            )
    finally:
        task.experiment = experiment
    if result.state == "stopped":
        raise KeyboardInterrupt
    durations = [after - before for before, after in pairwise(times)]
    # without the first step, which is slow, and those with an evaluation
    plain_seconds = statistics.median(
        duration for step, duration in enumerate(durations[1:], 2) if step % half
    )
    return plain_seconds, max(0.0, durations[-1] - plain_seconds)
