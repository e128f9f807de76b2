"""Training settings become optimizers and schedules; rate factors; optimizer state."""

import pytest
import torch

from neural.core.errors import TaskError
from neural.core.experiment import TrainingSettings
from neural.language.declaration import float_field, int_field
from neural.optim.optimizer_factory import (
    ScheduledOptimizers,
    create_optimizer,
    create_schedule,
    resolve_optimizer_values,
    resolve_schedule,
)
from neural.optim.optimizers.adamw import AdamW
from neural.optim.schedule import Schedule
from neural.optim.schedules import registry as schedules
from neural.optim.schedules.cosine_decay import CosineDecay
from neural.optim.schedules.exponential_decay import ExponentialDecay
from neural.optim.schedules.linear_decay import LinearDecay
from neural.optim.schedules.warmup import Warmup

NAMES = ("focus.weight", "classifier.weight")


def create_scheduled(parameters, rate_factors=None, **training):
    settings = TrainingSettings(**training)
    return ScheduledOptimizers(create_optimizer(settings), settings, 10, parameters, rate_factors)


def take_step(rate_factors):
    """How far two weights move in one step of SGD with gradients of 1, and the optimizers."""
    parameters = [(name, torch.nn.Parameter(torch.zeros(3))) for name in NAMES]
    optimizers = create_scheduled(parameters, rate_factors, optimizer="SGD(learning_rate=0.1)")
    for _, param in parameters:
        param.grad = torch.ones(3)
    optimizers.step(0)
    return [round(float(-param.detach()[0]), 6) for _, param in parameters], optimizers


def test_rate_factors_scale_the_learning_rate_of_a_module():
    assert take_step({"focus.": 4.0})[0] == [0.4, 0.1]


def test_without_rate_factors_there_is_one_optimizer():
    distances, optimizers = take_step(None)
    assert distances == [0.1, 0.1]
    assert len(optimizers.optimizers) == 1


def test_the_state_of_two_optimizers_is_restored():
    parameters = [(name, torch.nn.Parameter(torch.ones(3))) for name in NAMES]
    saved, restored = (
        create_scheduled(parameters, {"focus.": 2.0}, optimizer="Adam()") for _ in range(2)
    )
    for _, param in parameters:
        param.grad = torch.ones(3)
    saved.step(0)
    restored.load_state_dict(*saved.state_dict())
    tensors, metadata = restored.state_dict()
    assert metadata == saved.state_dict()[1]
    assert all(torch.equal(tensor, saved.state_dict()[0][name]) for name, tensor in tensors.items())


def step_weight(optimizer, state=None):
    """A weight after one step from 1, and the optimizer's state; starts from `state` if given."""
    parameters = [("weight", torch.nn.Parameter(torch.ones(2, 2)))]
    optimizers = create_scheduled(parameters, optimizer=optimizer)
    if state is not None:
        optimizers.load_state_dict(*state)
    parameters[0][1].grad = torch.ones(2, 2)
    optimizers.step(0)
    return float(parameters[0][1].detach()[0, 0]), optimizers.state_dict()


def test_a_restored_optimizer_uses_the_current_hyperparameters():
    _, state = step_weight("AdamW(learning_rate=0.1, weight_decay=0.0)")
    same, decayed = (
        step_weight(f"AdamW(learning_rate=0.1, weight_decay={decay})", state)[0]
        for decay in (0.0, 5.0)
    )
    assert (round(same, 3), round(decayed, 3)) == (0.9, 0.4)


def test_the_checked_optimizer_of_a_program_is_used_as_it_is():
    declared = AdamW(learning_rate=CosineDecay(0.1, 40), beta_2=0.99)
    assert create_optimizer(TrainingSettings(optimizer=repr(declared)), declared) is declared
    assert create_optimizer(TrainingSettings(optimizer="SGD"), declared) != declared


def test_warmup_steps_replace_the_warm_up_of_a_schedule():
    settings = TrainingSettings(
        steps=50,
        warmup_steps=4,
        optimizer="SGD(learning_rate=CosineDecay(0.1, 40, warmup_steps=9))",
    )
    peak, factor = resolve_schedule(settings, create_optimizer(settings), 50)
    assert [round(peak * factor(step), 3) for step in range(5)] == [0, 0.025, 0.05, 0.075, 0.1]


def schedule_of(steps=100, **training):
    settings = TrainingSettings(optimizer="SGD(learning_rate=0.1)", **training)
    return create_schedule(settings, create_optimizer(settings), steps)


@pytest.mark.parametrize("name", ["cosine", "cosine_decay", "CosineDecay", "CosineDecay()"])
def test_a_scheduler_gets_missing_arguments_from_the_training_settings(name):
    expected = CosineDecay(0.1, 90, alpha=0.5, warmup_steps=10)
    assert schedule_of(scheduler=name, warmup_steps=10, min_learning_rate=0.05) == expected


@pytest.mark.parametrize(
    ("text", "schedule"),
    [
        ("linear(decay_steps=7)", LinearDecay(0.1, 7)),
        ("ExponentialDecay(0.2, 5, 0.5)", ExponentialDecay(0.2, 5, 0.5)),
        ("exponential(decay_steps=5, decay_rate=0.5)", ExponentialDecay(0.1, 5, 0.5)),
        ("Warmup(3, LinearDecay(0.1, 7))", Warmup(3, LinearDecay(0.1, 7))),
        ("constant", None),
        ("plateau", None),
    ],
)
def test_a_scheduler_may_have_arguments(text, schedule):
    assert schedule_of(scheduler=text) == schedule


def test_the_learning_rate_of_the_settings_replaces_that_of_the_scheduler():
    settings = TrainingSettings(scheduler="ExponentialDecay(0.2, 5, 0.5)")
    for learning_rate, expected in ((None, 0.2), (0.3, 0.3)):
        changed = settings.model_copy(update={"learning_rate": learning_rate})
        assert resolve_schedule(changed, create_optimizer(changed), 9)[0] == expected
        assert resolve_optimizer_values(changed)["learning_rate"] == expected


class Sawtooth(Schedule):
    """Falls linearly in every period."""

    initial_learning_rate: float = float_field("The rate at the start of a period.", above=0)
    period: int = int_field("Steps of a period.")

    def learning_rate_at(self, step: float) -> float:
        return self.initial_learning_rate * (1 - step % self.period / self.period)

    @property
    def peak_learning_rate(self) -> float:
        return self.initial_learning_rate


@pytest.mark.parametrize("text", ["Sawtooth(period=4)", "sawtooth(0.1, 4)"])
def test_a_schedule_added_to_the_registry_is_a_scheduler(monkeypatch, text):
    monkeypatch.setattr(schedules, "_added", {})
    schedules.add(Sawtooth)
    settings = TrainingSettings(optimizer="SGD(learning_rate=0.1)", scheduler=text)
    peak, factor = resolve_schedule(settings, create_optimizer(settings), 100)
    assert peak == 0.1
    assert [factor(step) for step in range(6)] == pytest.approx([1, 0.75, 0.5, 0.25, 1, 0.75])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("cosin", "no schedule is called `cosin` .did you mean `CosineDecay`"),
        ("platau", "no schedule is called `platau`; did you mean `plateau`"),
        ("exponential", "needs `decay_rate`"),
        ("cosine(alpha=3)", "alpha"),
        ("CosineDecay(", "schedule"),
        ("3", "schedule"),
    ],
)
def test_an_invalid_scheduler_is_an_error(text, message):
    with pytest.raises(TaskError, match=message):
        schedule_of(scheduler=text)


def learning_rates(optimizers):
    return [
        group["lr"]
        for torch_optimizer in optimizers.optimizers
        for group in torch_optimizer.param_groups
    ]


def test_another_learning_rate_scales_both_learning_rates_of_muon():
    text = "Muon(learning_rate=LinearDecay(0.02, 10), other_learning_rate=0.01)"
    names = ("first", "second", "last")
    parameters = [(name, torch.nn.Parameter(torch.zeros(3, 3))) for name in names]
    own, scaled = (
        learning_rates(create_scheduled(parameters, optimizer=text, learning_rate=learning_rate))
        for learning_rate in (None, 0.002)
    )
    assert own == [0.02, 0.01]
    assert scaled == pytest.approx([0.002, 0.001])


def test_rate_factors_scale_both_learning_rates_of_muon():
    names = ("focus.first", "focus.last")
    parameters = [(name, torch.nn.Parameter(torch.zeros(3, 3))) for name in names]
    text = "Muon(learning_rate=0.02, other_learning_rate=0.01)"
    optimizers = create_scheduled(parameters, {"focus.": 0.1}, optimizer=text)
    assert learning_rates(optimizers) == pytest.approx([0.002, 0.001])


@pytest.mark.parametrize(
    ("training", "values"),
    [
        (
            {"optimizer": "AdamW"},
            {"learning_rate": 0.001, "weight_decay": 0.01, "clip_norm": None},
        ),
        (
            {"optimizer": "SGD(learning_rate=0.5, clipnorm=2.0)", "learning_rate": 0.1},
            {"learning_rate": 0.1, "weight_decay": 0.0, "clip_norm": 2.0},
        ),
        (
            {"optimizer": "Muon(learning_rate=0.02)", "clip_norm": 1.0, "weight_decay": 0.1},
            {
                "learning_rate": 0.02,
                "other_learning_rate": 0.002,
                "weight_decay": 0.1,
                "clip_norm": 1.0,
            },
        ),
    ],
)
def test_resolved_values_come_from_the_settings_or_else_from_the_optimizer(training, values):
    assert resolve_optimizer_values(TrainingSettings(**training)) == values
