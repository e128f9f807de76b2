"""Kernels of query-key norm, rotary positions and squared ReLU equal the plain versions."""

import pytest
import torch

from neural.nn.activations import SquaredReLU
from neural.nn.kernel_dispatch import no_kernels
from neural.nn.multi_head_attention import normalize_and_rotate
from neural.nn.positions.rotary import RotaryPositions

B, T, H, D = 3, 7, 5, 12


@pytest.mark.parametrize(
    "positions", [None, RotaryPositions(100.0)], ids=["no positions", "rotary"]
)
@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("offset", [0, 4])
def test_the_kernel_equals_the_plain_normalize_and_rotate(positions, normalize, offset):
    x = torch.randn(B, T, H, D).transpose(1, 2).requires_grad_()
    grad_out = torch.randn(B, H, T, D)
    fast = normalize_and_rotate(x, offset, positions, normalize, 1e-6)
    with no_kernels():
        plain = normalize_and_rotate(x, offset, positions, normalize, 1e-6)
    assert (positions is None and not normalize) or type(fast.grad_fn) is not type(plain.grad_fn)
    torch.testing.assert_close(fast, plain, rtol=1e-5, atol=1e-5)
    actual, expected = (
        torch.autograd.grad(output, x, grad_out)[0] for output in (fast + 0, plain + 0)
    )
    torch.testing.assert_close(actual, expected, rtol=1e-5, atol=1e-5)


def test_other_layouts_and_precisions_are_supported():
    rotary = RotaryPositions(100.0)
    x = torch.randn(B, H, T, D, dtype=torch.float64)
    expected = normalize_and_rotate(x, 2, rotary, True, 1e-6)
    for other in (x.float(), x.float().mT.contiguous().mT):
        torch.testing.assert_close(
            normalize_and_rotate(other, 2, rotary, True, 1e-6).double(),
            expected,
            rtol=1e-5,
            atol=1e-5,
        )


def test_the_kernel_equals_the_plain_squared_relu():
    x = torch.randn(2, 3, 17, requires_grad=True)
    grad_out = torch.randn(2, 3, 17)
    fast = SquaredReLU()(x)
    with no_kernels():
        plain = SquaredReLU()(x)
    torch.testing.assert_close(fast, plain)
    actual, expected = (torch.autograd.grad(output, x, grad_out)[0] for output in (fast, plain))
    torch.testing.assert_close(actual, expected)


def test_kernels_do_not_change_the_number_of_torchs_threads():
    before = torch.get_num_threads()
    SquaredReLU()(torch.randn(4, 5))
    normalize_and_rotate(torch.randn(B, T, H, D).transpose(1, 2), 0, None, True, 1e-6)
    assert torch.get_num_threads() == before
