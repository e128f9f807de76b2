"""Queries, keys and what comes after them: the compiled pass is the plain one."""

import pytest
import torch

from neural.modules.activations import SquaredReLU
from neural.modules.compiled import plain_torch
from neural.modules.heads import placed
from neural.modules.positions.rotary import RotaryPositions

B, T, H, D = 3, 7, 5, 12


@pytest.mark.parametrize("positions", [None, RotaryPositions(100.0)], ids=["no positions", "rotary"])
@pytest.mark.parametrize("normed", [True, False])
@pytest.mark.parametrize("first", [0, 4])
def test_queries_are_placed_alike_in_one_pass_and_in_many(positions, normed, first):
    x = torch.randn(B, T, H, D).transpose(1, 2).requires_grad_()
    towards = torch.randn(B, H, T, D)
    fast = placed(x, first, positions, normed, 1e-6)
    with plain_torch():
        plain = placed(x, first, positions, normed, 1e-6)
    assert (positions is None and not normed) or type(fast.grad_fn) is not type(plain.grad_fn)
    torch.testing.assert_close(fast, plain, rtol=1e-5, atol=1e-5)
    made, expected = (torch.autograd.grad(one, x, towards)[0] for one in (fast + 0, plain + 0))
    torch.testing.assert_close(made, expected, rtol=1e-5, atol=1e-5)


def test_other_layouts_and_precisions_are_placed_too():
    turning = RotaryPositions(100.0)
    x = torch.randn(B, H, T, D, dtype=torch.float64)
    expected = placed(x, 2, turning, True, 1e-6)
    for other in (x.float(), x.float().mT.contiguous().mT):
        torch.testing.assert_close(placed(other, 2, turning, True, 1e-6).double(), expected, rtol=1e-5, atol=1e-5)


def test_the_squared_relu_is_the_same_in_one_pass():
    x = torch.randn(2, 3, 17, requires_grad=True)
    towards = torch.randn(2, 3, 17)
    fast = SquaredReLU()(x)
    with plain_torch():
        plain = SquaredReLU()(x)
    torch.testing.assert_close(fast, plain)
    made, expected = (torch.autograd.grad(one, x, towards)[0] for one in (fast, plain))
    torch.testing.assert_close(made, expected)


def test_kernels_leave_the_number_of_torchs_threads_alone():
    before = torch.get_num_threads()
    SquaredReLU()(torch.randn(4, 5))
    placed(torch.randn(B, T, H, D).transpose(1, 2), 0, None, True, 1e-6)
    assert torch.get_num_threads() == before
