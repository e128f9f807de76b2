"""How long a training will take: from real steps, and by hand."""

import pytest

from neural.experiments import task_of
from neural.projection import START, Projection, projected, together
from neural.samples import Samples
from tests.studies import write_study


def test_the_seconds_of_a_training_are_those_of_its_steps_and_looks():
    assert Projection(0.5, 2.0, 100, 10).seconds == START + 50 + 20


@pytest.mark.parametrize(
    ("seconds", "workers", "whole"), [([3, 3, 3], 1, 9), ([3, 3, 3], 2, 6), ([5, 1, 1, 1], 2, 5), ([2], 4, 2)]
)
def test_trials_share_the_workers_in_their_order(seconds, workers, whole):
    assert together(seconds, workers) == whole


def test_a_few_steps_are_made_and_the_task_stays_as_it_was(tmp_path):
    write_study(tmp_path)
    task = task_of(tmp_path / "small.yaml", ["data=numbers.txt"])
    before, there = task.experiment, sorted(tmp_path.iterdir())
    found = projected(task, Samples(number=2, length=40), every=5, threads=1)
    assert (found.steps, found.looks) == (12, 3)
    assert 0 < found.step < 5
    assert 0 < found.look < 20, "texts and a validation take longer than nothing"
    assert task.experiment is before
    assert sorted(tmp_path.iterdir()) == there
