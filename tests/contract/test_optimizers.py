"""What every optimizer promises: steps that lower a loss, at the rate that was asked for."""

import pytest
import torch

from neural.training.optimizers import registry as optimizers
from neural.training.schedules.exponential_decay import ExponentialDecay

every_optimizer = pytest.mark.parametrize("name", optimizers.names())


def parameters() -> list[tuple[str, torch.nn.Parameter]]:
    """A table, a hidden matrix and a bias, a head."""
    torch.manual_seed(0)
    shapes = {
        "embedding.table.weight": (11, 5), "dense.linear.weight": (7, 5), "dense.linear.bias": (7,),
        "output.linear.weight": (3, 7),
    }  # fmt: skip
    return [(name, torch.nn.Parameter(torch.randn(shape))) for name, shape in shapes.items()]


@every_optimizer
def test_every_parameter_is_moved_by_exactly_one_optimizer(name):
    named = parameters()
    made = optimizers.get(name).tiny().build(iter(named))
    held = [id(one) for optimizer in made for group in optimizer.param_groups for one in group["params"]]
    assert sorted(held) == sorted(id(one) for _, one in named)


@every_optimizer
def test_steps_change_every_parameter_and_lower_a_quadratic(name):
    named = parameters()
    made = optimizers.get(name)(learning_rate=0.01).build(named)
    before = {path: one.detach().clone() for path, one in named}
    values = []
    for _ in range(20):
        loss = sum((one.square()).sum() for _, one in named)
        values.append(loss.item())
        for optimizer in made:
            optimizer.zero_grad()
        loss.backward()
        for optimizer in made:
            optimizer.step()
    assert values == sorted(values, reverse=True)
    assert values[-1] < values[0]
    assert not any(torch.equal(before[path], one) for path, one in named)


@every_optimizer
def test_the_rate_arrives_in_torch(name):
    (first, *_) = optimizers.get(name)(learning_rate=0.037).build(parameters())
    assert all(group["lr"] == 0.037 for group in first.param_groups)


@every_optimizer
def test_a_schedule_gives_the_rate(name):
    schedule = ExponentialDecay(0.1, 5, 0.5)
    optimizer = optimizers.get(name)(learning_rate=schedule)
    assert optimizer.rate(7) == schedule.at(7)
    (first, *_) = optimizer.build(parameters())
    assert first.param_groups[0]["lr"] == 0.1


@every_optimizer
def test_a_state_can_be_saved_and_loaded(name):
    named = parameters()
    made = optimizers.get(name).tiny().build(named)
    for _, one in named:
        one.grad = torch.ones_like(one)
    for optimizer in made:
        optimizer.step()
    again = optimizers.get(name).tiny().build(named)
    for old, new in zip(made, again, strict=True):
        new.load_state_dict(old.state_dict())
        assert len(new.state) == len(old.state)
