"""What a run remembers of how it has gone."""

import math

import pytest
import torch

from neural.tasks.experiment import Training
from neural.tasks.task import TaskError
from neural.training.state import State


def test_a_network_without_weights_has_nothing_to_learn():
    with pytest.raises(TaskError, match="there is nothing to learn: no layer of the network has weights"):
        State.first(torch.nn.Flatten(), Training(), 10)


@pytest.mark.parametrize("larger", [False, True])
def test_a_number_is_better_than_none(larger):
    state = State(model=None, optimizing=None, average=None)
    for score in (math.nan, 0.5, math.nan):
        state.judge({"valid/f1": score}, "valid/f1", larger=larger, settings=Training())
    assert state.best == {"valid/f1": 0.5}
    assert state.waited == 1
