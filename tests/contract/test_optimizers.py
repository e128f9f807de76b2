"""Every optimizer lowers a loss, at the given learning rate."""

import pytest
import torch

from neural.optim.optimizers import registry as optimizers
from neural.optim.schedules.exponential_decay import ExponentialDecay

every_optimizer = pytest.mark.parametrize("name", optimizers.names())


def make_parameters() -> list[tuple[str, torch.nn.Parameter]]:
    """An embedding table, a hidden matrix, a bias and a head."""
    torch.manual_seed(0)
    shapes = {
        "embedding.table.weight": (11, 5),
        "dense.linear.weight": (7, 5),
        "dense.linear.bias": (7,),
        "output.linear.weight": (3, 7),
    }
    return [(name, torch.nn.Parameter(torch.randn(shape))) for name, shape in shapes.items()]


@every_optimizer
def test_every_parameter_belongs_to_exactly_one_optimizer(name):
    named = make_parameters()
    torch_optimizers = optimizers.get(name).example().build(iter(named))
    owned_ids = [
        id(param)
        for optimizer in torch_optimizers
        for group in optimizer.param_groups
        for param in group["params"]
    ]
    assert sorted(owned_ids) == sorted(id(param) for _, param in named)


@every_optimizer
def test_steps_change_every_parameter_and_lower_a_quadratic(name):
    named = make_parameters()
    torch_optimizers = optimizers.get(name)(learning_rate=0.01).build(named)
    before = {param_name: param.detach().clone() for param_name, param in named}
    values = []
    for _ in range(20):
        loss = sum((param.square()).sum() for _, param in named)
        values.append(loss.item())
        for optimizer in torch_optimizers:
            optimizer.zero_grad()
        loss.backward()
        for optimizer in torch_optimizers:
            optimizer.step()
    assert values == sorted(values, reverse=True)
    assert values[-1] < values[0]
    assert not any(torch.equal(before[param_name], param) for param_name, param in named)


@every_optimizer
def test_the_learning_rate_is_set_in_torch(name):
    (first, *_) = optimizers.get(name)(learning_rate=0.037).build(make_parameters())
    assert all(group["lr"] == 0.037 for group in first.param_groups)


@every_optimizer
def test_a_schedule_sets_the_learning_rate(name):
    schedule = ExponentialDecay(0.1, 5, 0.5)
    optimizer = optimizers.get(name)(learning_rate=schedule)
    assert optimizer.learning_rate_at(7) == schedule.learning_rate_at(7)
    (first, *_) = optimizer.build(make_parameters())
    assert first.param_groups[0]["lr"] == 0.1


@every_optimizer
def test_a_state_can_be_saved_and_loaded(name):
    named = make_parameters()
    torch_optimizers = optimizers.get(name).example().build(named)
    for _, param in named:
        param.grad = torch.ones_like(param)
    for optimizer in torch_optimizers:
        optimizer.step()
    new_optimizers = optimizers.get(name).example().build(named)
    for saved, loaded in zip(torch_optimizers, new_optimizers, strict=True):
        loaded.load_state_dict(saved.state_dict())
        assert len(loaded.state) == len(saved.state)
