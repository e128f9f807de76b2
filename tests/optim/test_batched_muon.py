"""Muon's batched float32 step equals torch's, but for torch's rounding to bfloat16."""

from contextlib import contextmanager

import pytest
import torch

from neural.native.library import available_levels, force_level, no_kernels
from neural.optim.batched_muon import muon_class, orthogonalize

COEFFICIENTS = (3.4445, -4.7750, 2.0315)


def create_optimizer(optimizer_class, shapes, **options):
    """Parameters, the same for every call, and an optimizer of them."""
    torch.manual_seed(0)
    parameters = [torch.nn.Parameter(torch.randn(shape)) for shape in shapes]
    return parameters, optimizer_class(parameters, lr=0.02, **options)


def test_a_step_equals_that_of_torch():
    """torch's rounding to bfloat16 moves a step by less than 3 % of its length."""
    shapes = [(7, 7), (7, 7), (13, 7), (7, 13), (7, 13)]
    options = {"momentum": 0.9, "weight_decay": 0.1}
    params, batched = create_optimizer(muon_class(), shapes, **options)
    torch_params, torch_muon = create_optimizer(torch.optim.Muon, shapes, **options)
    for _ in range(3):
        for param, torch_param in zip(params, torch_params, strict=True):
            param.grad = torch.randn_like(param)
            torch_param.grad = param.grad.clone()
        batched.step()
        torch_muon.step()
    for param, torch_param in zip(params, torch_params, strict=True):
        torch.testing.assert_close(param, torch_param, rtol=0, atol=0.02 * 3 * 0.03)
    assert batched.state_dict()["state"].keys() == torch_muon.state_dict()["state"].keys()
    for state, torch_state in zip(batched.state.values(), torch_muon.state.values(), strict=True):
        torch.testing.assert_close(state["momentum_buffer"], torch_state["momentum_buffer"])


def test_a_parameter_without_gradient_stays():
    (fixed, trained), optimizer = create_optimizer(muon_class(), [(5, 3), (5, 3)])
    before = fixed.detach().clone()
    trained.grad = torch.randn(5, 3)
    optimizer.step()
    assert torch.equal(fixed, before)


def test_singular_values_become_about_one():
    x = torch.randn(4, 11, 5)
    values = torch.linalg.svdvals(orthogonalize(x, COEFFICIENTS, 5, 1e-7))
    assert values.min() > 0.6
    assert values.max() < 1.3


def test_zero_momentum_gives_a_zero_step():
    assert torch.equal(
        orthogonalize(torch.zeros(1, 3, 5), COEFFICIENTS, 5, 1e-7), torch.zeros(1, 3, 5)
    )


LEVELS = available_levels()


@contextmanager
def one_thread():
    """The kernel needs at least as many matrices as threads."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


SHAPES = [(7, 7), (13, 7), (7, 13), (65, 31), (1, 40), (33, 1), (70, 97), (130, 40)]


def train_steps(shapes, *, steps=3, **options):
    """Parameters after a few steps."""
    params, optimizer = create_optimizer(muon_class(), shapes, weight_decay=0.1, **options)
    for _ in range(steps):
        for param in params:
            param.grad = torch.randn_like(param)
        optimizer.step()
    return params, [optimizer.state[param]["momentum_buffer"] for param in params]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("options", [{}, {"nesterov": False}, {"ns_steps": 7}])
def test_the_kernel_equals_the_batched_step(level, options):
    with force_level(level):
        params, momenta = train_steps(SHAPES, **options)
    with no_kernels():
        expected_params, expected_momenta = train_steps(SHAPES, **options)
    for actual, expected in zip(params, expected_params, strict=True):
        torch.testing.assert_close(actual, expected, rtol=1e-5, atol=1e-5)
    for actual, expected in zip(momenta, expected_momenta, strict=True):
        torch.testing.assert_close(actual, expected)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("rank", [0, 1, 3, 40])
def test_the_kernel_is_exact_for_matrices_of_low_rank(level, rank):
    """The iteration of the Gram matrix amplifies rounding errors where singular values are 0."""
    grad = torch.randn(200, rank) @ torch.randn(rank, 64)
    weight = torch.nn.Parameter(torch.zeros(200, 64))
    weight.grad = grad
    with force_level(level), one_thread():
        muon_class()([weight], lr=1.0, momentum=0.0, weight_decay=0.0, nesterov=False).step()
    expected = orthogonalize(grad[None].double(), COEFFICIENTS, 5, 1e-7)[0]
    step = -weight.detach().double() / (200 / 64) ** 0.5
    torch.testing.assert_close(step, expected, rtol=0, atol=2e-4)


@pytest.mark.parametrize("level", LEVELS)
def test_the_kernel_does_not_depend_on_the_number_of_threads(level):
    with force_level(level):
        params, _ = train_steps(SHAPES)
        with one_thread():
            single_threaded, _ = train_steps(SHAPES)
    assert all(map(torch.equal, params, single_threaded))


def test_nan_gradients_give_nan_weights():
    with one_thread():
        weight = torch.nn.Parameter(torch.zeros(5, 3))
        weight.grad = torch.full((5, 3), torch.nan)
        muon_class()([weight]).step()
    assert weight.isnan().all()
