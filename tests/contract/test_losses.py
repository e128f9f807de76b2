"""What every loss promises. What its targets are is read from its signature: `Int` means class numbers."""

import os

os.environ.setdefault("KERAS_BACKEND", "torch")

import keras
import pytest
import torch

from neural.modules.activations import NAMES, activation
from neural.modules.losses import registry as losses

B, T, C = 2, 7, 5
every_loss = pytest.mark.parametrize("name", losses.names())


def scores() -> torch.Tensor:
    torch.manual_seed(0)
    return torch.randn(B, T, C, dtype=torch.float64, requires_grad=True)


def targets(name: str) -> torch.Tensor:
    loss = losses.get(name)
    torch.manual_seed(1)
    if loss.measure.__annotations__["target"].startswith("Int"):
        return torch.randint(0, C, (B, T))
    return torch.randn(B, T, C, dtype=torch.float64).softmax(dim=-1)


def head(name: str):
    """The activation that the loss contains, or none."""
    (contained,) = losses.get(name).fuses or {"linear"}
    return activation(contained)


def keras_loss(name: str):
    try:
        return keras.losses.get(name)
    except ValueError:
        return None


@every_loss
def test_a_loss_is_one_finite_number_with_a_gradient(name):
    x = scores()
    measured = losses.get(name).tiny().measure(x, targets(name))
    assert measured.shape == ()
    assert measured >= 0
    measured.backward()
    assert x.grad.isfinite().all()
    assert x.grad.count_nonzero()


@every_loss
def test_a_loss_stays_finite_at_scores_where_probabilities_are_zero(name):
    x = 1e3 * scores().detach()
    measured = losses.get(name).tiny().measure(x.requires_grad_(), targets(name))
    measured.backward()
    assert measured.isfinite()
    assert x.grad.isfinite().all()


@every_loss
def test_the_fused_loss_is_the_keras_loss_of_the_predictions(name):
    other = keras_loss(name)
    if other is None:
        pytest.skip(f"keras has no {name}")
    x, wanted = scores(), targets(name)
    fused = losses.get(name).tiny().measure(x, wanted)
    two_steps = other(wanted, head(name)(x)).mean()
    torch.testing.assert_close(fused, two_steps.to(fused.dtype), rtol=1e-6, atol=1e-6)


@every_loss
def test_every_position_weighs_the_same(name):
    loss, x, wanted = losses.get(name).tiny(), scores(), targets(name)
    each = [loss.measure(x[b : b + 1, t : t + 1], wanted[b : b + 1, t : t + 1]) for b in range(B) for t in range(T)]
    torch.testing.assert_close(loss.measure(x, wanted), torch.stack(each).mean())


@every_loss
def test_a_loss_understands_the_heads_that_it_contains_and_the_linear_one(name):
    loss = losses.get(name).tiny()
    assert loss.fuses <= set(NAMES)
    for contained in (*loss.fuses, "linear"):
        assert loss.head_problem(contained, C) is None
