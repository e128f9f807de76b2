"""Muon's batched float32 step equals torch's, but for torch's rounding to bfloat16."""

import torch

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
