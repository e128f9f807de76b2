"""The kernel of sparsemax and 1.5-entmax equals the sorted formulas at every instruction set."""

import pytest
import torch

from neural.native.library import available_levels, force_level
from neural.nn.attention.entmax15 import entmax15
from neural.nn.attention.sparsemax import sparsemax

pytestmark = pytest.mark.skipif(not available_levels(), reason="no native library")
every_level = pytest.mark.parametrize("level", available_levels())
both = pytest.mark.parametrize("project", [sparsemax, entmax15])


@every_level
@both
@pytest.mark.parametrize("keys", [1, 2, 7, 31, 300])
@pytest.mark.parametrize("scale", [0.0, 0.01, 1.0, 30.0])
def test_every_level_equals_the_sorted_formula_in_64_bits(level, project, keys, scale):
    torch.manual_seed(0)
    scores = (scale * torch.randn(3, 5, keys)).requires_grad_()
    exact, grad_out = scores.detach().double().requires_grad_(), torch.randn(3, 5, keys)
    with force_level(level):
        weights = project(scores)
        (gradient,) = torch.autograd.grad(weights, scores, grad_out)
    expected = project(exact)  # 64 bits: plain torch
    (expected_gradient,) = torch.autograd.grad(expected, exact, grad_out.double())
    torch.testing.assert_close(weights.double(), expected, rtol=0, atol=1e-6)
    torch.testing.assert_close(gradient.double(), expected_gradient, rtol=0, atol=5e-6)
    torch.testing.assert_close(weights.sum(dim=-1), torch.ones(3, 5), rtol=0, atol=2e-6)


@every_level
@both
def test_a_row_with_nan_is_nan_and_minus_infinity_has_no_weight(level, project):
    scores = torch.randn(3, 37)
    scores[0, 20], scores[1, 30] = torch.nan, -torch.inf
    with force_level(level):
        weights = project(scores)
    assert weights[0].isnan().all()
    assert weights[1, 30] == 0
    assert weights[1:].isfinite().all()


@pytest.mark.parametrize("squared", [False, True])
def test_the_operator_follows_the_rules_of_torch(squared):
    from neural.nn.kernels.entmax_rows import entmax_rows

    torch.manual_seed(0)
    torch.library.opcheck(entmax_rows, (torch.randn(3, 5, requires_grad=True), squared))
