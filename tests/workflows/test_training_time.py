"""Estimates of training time, from measured steps and computed by hand."""

import pytest

from neural.training.load_task import load_task
from neural.workflows.samples import SampleSettings
from neural.workflows.training_time import (
    STARTUP_SECONDS,
    TimeEstimate,
    estimate_parallel_time,
    estimate_training_time,
)
from tests.studies import write_study


def test_the_total_time_is_startup_steps_and_evaluations():
    assert TimeEstimate(0.5, 2.0, 100, 10).total_seconds == STARTUP_SECONDS + 50 + 20


@pytest.mark.parametrize(
    ("seconds", "workers", "total"),
    [([3, 3, 3], 1, 9), ([3, 3, 3], 2, 6), ([5, 1, 1, 1], 2, 5), ([2], 4, 2)],
)
def test_trials_are_assigned_to_workers_in_order(seconds, workers, total):
    assert estimate_parallel_time(seconds, workers) == total


def test_measuring_a_few_steps_changes_neither_the_task_nor_the_folder(tmp_path):
    write_study(tmp_path)
    task = load_task(tmp_path / "small.yaml", ["data=numbers.txt"])
    experiment, paths = task.experiment, sorted(tmp_path.iterdir())
    estimate = estimate_training_time(
        task, SampleSettings(number=2, length=40), evaluate_every=5, threads=1
    )
    assert (estimate.steps, estimate.evaluations) == (12, 3)
    assert estimate.step_seconds > 0
    assert estimate.evaluation_seconds > 0, "samples and a validation take time"
    assert task.experiment is experiment
    assert sorted(tmp_path.iterdir()) == paths
