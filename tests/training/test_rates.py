"""Parts of a model that learn at rates of their own."""

import pytest
import torch

from neural.tasks.experiment import Training
from neural.tracking.trouble import RunError
from neural.training.rates import Steps, optimizer_of, share_of, values_used

NAMES = ("focus.weight", "classifier.weight")


def moved(faster):
    """How far two weights go in one step, the gradient of both being 1."""
    parts = [(name, torch.nn.Parameter(torch.zeros(3))) for name in NAMES]
    steps = Steps(Training(optimizer="SGD(learning_rate=0.1)"), 10, parts, faster)
    for _, one in parts:
        one.grad = torch.ones(3)
    steps.take(0)
    return [round(float(-one.detach()[0]), 6) for _, one in parts], steps


def test_a_part_that_is_to_learn_faster_does():
    assert moved({"focus.": 4.0})[0] == [0.4, 0.1]


def test_without_a_wish_there_is_one_optimizer_and_one_rate():
    lengths, steps = moved(None)
    assert lengths == [0.1, 0.1]
    assert len(steps.optimizers) == 1


def test_what_was_saved_of_two_optimizers_is_loaded_into_two():
    parts = [(name, torch.nn.Parameter(torch.ones(3))) for name in NAMES]
    first, second = (Steps(Training(optimizer="Adam()"), 10, parts, {"focus.": 2.0}) for _ in range(2))
    for _, one in parts:
        one.grad = torch.ones(3)
    first.take(0)
    second.load(*first.state())
    assert second.state()[1] == first.state()[1]
    assert all(torch.equal(one, first.state()[0][name]) for name, one in second.state()[0].items())


def stepped(optimizer, saved=None):
    """A weight after a step of its own, or after one on top of what was saved."""
    parts = [("weight", torch.nn.Parameter(torch.ones(2, 2)))]
    steps = Steps(Training(optimizer=optimizer), 10, parts)
    if saved is not None:
        steps.load(*saved)
    parts[0][1].grad = torch.ones(2, 2)
    steps.take(0)
    return float(parts[0][1].detach()[0, 0]), steps.state()


def test_a_run_goes_on_with_the_settings_of_now():
    _, saved = stepped("AdamW(learning_rate=0.1, weight_decay=0.0)")
    same, decayed = (stepped(f"AdamW(learning_rate=0.1, weight_decay={one})", saved)[0] for one in (0.0, 5.0))
    assert (round(same, 3), round(decayed, 3)) == (0.9, 0.4)


def test_a_run_cannot_go_on_by_another_optimizer():
    _, saved = stepped("SGD(momentum=0.9)")
    with pytest.raises(RunError, match="made its steps by SGD and cannot go on by Adam; begin a new one"):
        stepped("Adam()", saved)


def test_a_warm_up_takes_the_place_of_the_schedules_own():
    said = Training(steps=50, warmup_steps=4, optimizer="SGD(learning_rate=CosineDecay(0.1, 40, warmup_steps=9))")
    full, share = share_of(said, optimizer_of(said), 50)
    assert [round(full * share(step), 3) for step in range(5)] == [0, 0.025, 0.05, 0.075, 0.1]


def rates_of(steps):
    return [group["lr"] for optimizer in steps.optimizers for group in optimizer.param_groups]


def test_another_learning_rate_scales_both_rates_of_muon():
    text = "Muon(learning_rate=LinearDecay(0.02, 10), other_learning_rate=0.01)"
    parts = [(name, torch.nn.Parameter(torch.zeros(3, 3))) for name in ("first", "second", "last")]
    rates = {}
    for rate in (None, 0.002):
        steps = Steps(Training(optimizer=text, learning_rate=rate), 10, parts)
        rates[rate] = rates_of(steps)
    assert rates[None] == [0.02, 0.01]
    assert rates[0.002] == pytest.approx([0.002, 0.001])


def test_a_part_that_is_to_learn_faster_does_so_by_both_rates_of_muon():
    names = ("focus.first", "focus.last")
    parts = [(name, torch.nn.Parameter(torch.zeros(3, 3))) for name in names]
    training = Training(optimizer="Muon(learning_rate=0.02, other_learning_rate=0.01)")
    assert rates_of(Steps(training, 10, parts, {"focus.": 0.1})) == pytest.approx([0.002, 0.001])


@pytest.mark.parametrize(
    ("training", "used"),
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
def test_the_values_used_are_those_of_the_settings_or_else_of_the_optimizer(training, used):
    assert values_used(Training(**training)) == used
