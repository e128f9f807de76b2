"""Parts of a model that learn at rates of their own."""

import torch

from neural.tasks.experiment import Training
from neural.training.rates import Steps

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
