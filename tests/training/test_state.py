"""Training state: best scores, and what a checkpoint must match."""

import math

import pytest
import torch

from neural.core.errors import TaskError
from neural.core.experiment import TrainingSettings
from neural.optim.optimizer_factory import create_optimizer
from neural.runs.checkpoint import Checkpoint
from neural.runs.errors import RunError
from neural.training.state import TrainingState


def create_state(model, optimizer="AdamW"):
    settings = TrainingSettings(optimizer=optimizer)
    return TrainingState.create(model, create_optimizer(settings), settings, 10)


def test_a_network_without_weights_cannot_be_trained():
    with pytest.raises(
        TaskError, match="there is nothing to train: no layer of the network has weights"
    ):
        create_state(torch.nn.Flatten())


def test_a_run_cannot_resume_with_another_optimizer():
    tensors, metadata = create_state(torch.nn.Linear(2, 2), "SGD(momentum=0.9)").state_dict()
    checkpoint = Checkpoint(step=0, tensors=tensors, metadata=metadata, is_best=False)
    with pytest.raises(
        RunError, match="was trained with SGD and cannot resume with Adam; start a new run"
    ):
        create_state(torch.nn.Linear(2, 2), "Adam()").load_checkpoint(checkpoint)


@pytest.mark.parametrize("larger_is_better", [False, True])
def test_only_a_finite_score_is_the_best(larger_is_better):
    state = TrainingState(model=None, optimizers=None, ema=None)
    infinite = math.inf if larger_is_better else -math.inf
    for score in (math.nan, infinite, 0.5, math.nan, infinite):
        assert score == 0.5 or "valid/f1" not in state.best or state.best["valid/f1"] == 0.5
        state.update_best(
            {"valid/f1": score},
            "valid/f1",
            larger_is_better=larger_is_better,
            settings=TrainingSettings(),
        )
    assert state.best == {"valid/f1": 0.5}
    assert state.validations_since_best == 2
