"""Estimate the duration of a training from a few of its real steps.

An evaluation is all that happens every `evaluate_every` steps: an attention snapshot (attention on
a few fixed examples), a validation, generated texts and a checkpoint.
"""

from __future__ import annotations

import heapq
import math
import statistics
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from neural.findings.run_loading import has_attention
from neural.nn.lazy_torch import torch
from neural.runs.run import Run
from neural.tasks.task import Task
from neural.training.engine import count_steps, count_validation_interval, fit
from neural.workflows.samples import SampleEvaluator, SampleSettings
from neural.workflows.train import create_run

SHORT_TIMING_STEPS, LONG_TIMING_STEPS = 4, 40
"""Steps that are trained and timed, in a short measurement and in a long one."""
DRY_RUN_TIMING_STEPS = 8
"""Steps of the short measurement of `neural train --dry-run`."""
MAX_SHORT_TIMING_SECONDS = 6.0
"""The long measurement, which is more accurate, is made only if the short one was quicker."""
STARTUP_SECONDS = 6.0
"""Seconds to import torch and make the first step; measured on two cores."""


@dataclass(frozen=True)
class TimeEstimate:
    """Measured times, and the total that follows."""

    step_seconds: float
    evaluation_seconds: float
    """Seconds of one evaluation."""
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


class StepTimes(NamedTuple):
    """Result of `estimate_seconds`."""

    step_seconds: float
    total_seconds: float
    """Seconds of the whole training."""
    has_attention: bool
    """Whether attention was captured in these steps."""


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
        step, evaluation = _measure_steps(task, samples, SHORT_TIMING_STEPS)
        # a measurement has two evaluations
        if SHORT_TIMING_STEPS * step + 2 * evaluation < MAX_SHORT_TIMING_SECONDS:
            step, evaluation = _measure_steps(task, samples, LONG_TIMING_STEPS)
    finally:
        torch.set_num_threads(previous_threads)
    evaluations = math.ceil(steps / evaluate_every)
    return TimeEstimate(step, evaluation, steps, evaluations)


def estimate_parallel_time(seconds: Sequence[float], workers: int) -> float:
    """Seconds until all jobs are done, started in order, with `workers` at a time.

    `seconds` has the duration of each job.
    """
    finish_times = [0.0] * workers
    for duration in seconds:
        heapq.heappush(finish_times, heapq.heappop(finish_times) + duration)
    return max(finish_times)


def estimate_seconds(task: Task, processes: int = 1) -> StepTimes:
    """Time a few steps of a training, for `neural train --dry-run`.

    `processes` is the number of processes that will train together; the steps are timed in this
    one.
    """
    steps, track_every = count_steps(task, processes), task.experiment.tracking.track_every
    timing = _time_parts(task, DRY_RUN_TIMING_STEPS)
    if DRY_RUN_TIMING_STEPS * timing.step + timing.validation < MAX_SHORT_TIMING_SECONDS:
        timing = _time_parts(task, LONG_TIMING_STEPS)
    snapshots = 1 + steps // track_every if track_every else 0
    validations = math.ceil(steps / count_validation_interval(task, processes))
    total = steps * timing.step + snapshots * timing.snapshot + validations * timing.validation
    return StepTimes(timing.step, STARTUP_SECONDS + total, timing.has_attention)


class _PartTimes(NamedTuple):
    """Seconds of the parts of a training."""

    step: float
    snapshot: float
    validation: float
    """With the checkpoint that follows it."""
    has_attention: bool


def _time_parts(task: Task, steps: int) -> _PartTimes:
    """Train `steps` steps, a multiple of 4, and time them.

    A snapshot follows every quarter of them, a validation every half. The first of each is slow
    (compiled kernels are loaded), so the last ones count.
    """
    quarter = steps // 4
    has_snapshots = task.experiment.tracking.track_every > 0
    durations, attends = _time_steps(
        task, steps, validate_every=2 * quarter, track_every=quarter if has_snapshots else 0
    )
    step = statistics.median(
        duration for number, duration in enumerate(durations[1:], 2) if number % quarter
    )
    with_snapshot, with_both = durations[3 * quarter - 1], durations[4 * quarter - 1]
    snapshot = max(0.0, with_snapshot - step) if has_snapshots else 0.0
    validation = max(0.0, with_both - step - snapshot)
    return _PartTimes(step, snapshot, validation, attends)


def _measure_steps(task: Task, samples: SampleSettings, steps: int) -> tuple[float, float]:
    """(seconds of a plain step, extra seconds of a step with an evaluation), over `steps` steps.

    Evaluations follow the middle step and the last one.
    """
    half = steps // 2
    durations, _ = _time_steps(task, steps, validate_every=half, track_every=half, samples=samples)
    # without the first step, which is slow, and those with an evaluation
    plain_seconds = statistics.median(
        duration for step, duration in enumerate(durations[1:], 2) if step % half
    )
    return plain_seconds, max(0.0, durations[-1] - plain_seconds)


def _time_steps(
    task: Task,
    steps: int,
    *,
    validate_every: int,
    track_every: int,
    samples: SampleSettings | None = None,
) -> tuple[list[float], bool]:
    """Seconds of each of the first steps, and whether attention was captured in them.

    They are trained in a temporary folder; the task stays as it is. Attention
    snapshots follow every `track_every` steps, 0 for none.
    """
    experiment, times = task.experiment, [0.0]
    training = experiment.training.model_copy(
        update={"steps": steps, "epochs": None, "validate_every": validate_every}
    )
    tracking = experiment.tracking.model_copy(update={"track_every": track_every, "sinks": ()})
    task.experiment = experiment.model_copy(update={"training": training, "tracking": tracking})
    try:
        with tempfile.TemporaryDirectory() as folder:
            run = create_run(task, Path(folder))
            evaluator = None if samples is None else SampleEvaluator(task, samples).record_to(run)
            result = fit(
                task,
                run,
                on_step=lambda progress: times.append(progress.seconds),
                extra_metrics=evaluator,
            )
            with Run.open(run.path) as finished_run:
                attends = has_attention(finished_run)
    finally:
        task.experiment = experiment
    if result.state == "stopped":
        raise KeyboardInterrupt
    return [after - before for before, after in pairwise(times)], attends
