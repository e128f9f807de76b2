"""Contract of the losses. The annotation of `target` says what a loss takes: `Int` is class ids."""

import os

os.environ.setdefault("KERAS_BACKEND", "torch")

import keras
import pytest
import torch

from neural.nn.activations import ACTIVATION_NAMES, build_activation
from neural.nn.losses import registry as losses

B, T, C = 2, 7, 5
every_loss = pytest.mark.parametrize("name", losses.names())


def make_scores() -> torch.Tensor:
    torch.manual_seed(0)
    return torch.randn(B, T, C, dtype=torch.float64, requires_grad=True)


def make_targets(name: str) -> torch.Tensor:
    loss = losses.get(name)
    torch.manual_seed(1)
    if loss.compute.__annotations__["target"].startswith("Int"):
        return torch.randint(0, C, (B, T))
    return torch.randn(B, T, C, dtype=torch.float64).softmax(dim=-1)


def build_output_activation(name: str):
    """The activation that the loss contains, or the identity."""
    (activation,) = losses.get(name).fused_activations or {"linear"}
    return build_activation(activation)


def find_keras_loss(name: str):
    try:
        return keras.losses.get(name)
    except ValueError:
        return None


@every_loss
def test_a_loss_is_a_finite_scalar_with_a_gradient(name):
    x = make_scores()
    loss = losses.get(name).example().compute(x, make_targets(name))
    assert loss.shape == ()
    assert loss >= 0
    loss.backward()
    assert x.grad.isfinite().all()
    assert x.grad.count_nonzero()


@every_loss
def test_a_loss_stays_finite_where_probabilities_underflow(name):
    x = 1e3 * make_scores().detach()
    loss = losses.get(name).example().compute(x.requires_grad_(), make_targets(name))
    loss.backward()
    assert loss.isfinite()
    assert x.grad.isfinite().all()


@every_loss
def test_the_fused_loss_is_the_keras_loss_of_the_predictions(name):
    reference = find_keras_loss(name)
    if reference is None:
        pytest.skip(f"keras has no {name}")
    x, target = make_scores(), make_targets(name)
    fused = losses.get(name).example().compute(x, target)
    two_steps = reference(target, build_output_activation(name)(x)).mean()
    torch.testing.assert_close(fused, two_steps.to(fused.dtype), rtol=1e-6, atol=1e-6)


@every_loss
def test_every_position_has_the_same_weight(name):
    loss, x, target = losses.get(name).example(), make_scores(), make_targets(name)
    position_losses = [
        loss.compute(x[b : b + 1, t : t + 1], target[b : b + 1, t : t + 1])
        for b in range(B)
        for t in range(T)
    ]
    torch.testing.assert_close(loss.compute(x, target), torch.stack(position_losses).mean())


@every_loss
def test_a_loss_accepts_its_fused_activations_and_the_linear_head(name):
    loss = losses.get(name).example()
    assert loss.fused_activations <= set(ACTIVATION_NAMES)
    for activation in (*loss.fused_activations, "linear"):
        assert loss.output_problem(activation, C) is None
