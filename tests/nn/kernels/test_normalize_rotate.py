"""The kernel of query-key norm and rotary positions equals the torch version on every level."""

import pytest
import torch

from neural.native.library import available_levels, force_level
from neural.nn.kernel_dispatch import kernels_available, no_kernels
from neural.nn.kernels.normalize_rotate import normalize_rotate, supports
from neural.nn.multi_head_attention import normalize_and_rotate
from neural.nn.positions.rotary import RotaryPositions

LEVELS = available_levels()
ROTARY = RotaryPositions(100.0)
SHAPES = [(3, 7, 5, 12), (1, 1, 1, 2), (2, 3, 1, 34), (2, 5, 3, 64), (1, 13, 2, 38)]
"""(B, T, H, D)"""
pytestmark = pytest.mark.skipif(not LEVELS, reason="the native library is not built")


def run_both(x, offset, position, normalize):
    """Output and gradient of the kernel, then of torch operations."""
    results = []
    for is_plain in (False, True):
        leaf = x.detach().requires_grad_()
        with no_kernels() if is_plain else torch.enable_grad():
            out = normalize_and_rotate(leaf, offset, position, normalize, 1e-6)
        torch.manual_seed(1)
        results.append((out, torch.autograd.grad(out + 0, leaf, torch.randn(out.shape))[0]))
    return results


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("position", "normalize"), [(ROTARY, True), (ROTARY, False), (None, True)])
def test_values_and_gradients_equal_those_of_torch(level, shape, position, normalize):
    x = torch.randn(shape).transpose(1, 2)
    with force_level(level):
        (out, grad), (expected, expected_grad) = run_both(x, 4, position, normalize)
    torch.testing.assert_close(out, expected, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(grad, expected_grad, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "x",
    [
        torch.randn(2, 3, 5, 8),
        torch.randn(2, 5, 48)[..., 8:32].unflatten(-1, (3, 8)).transpose(1, 2),
        torch.randn(8, 5, 3, 2).permute(3, 2, 1, 0),
        torch.randn(1, 1, 5, 8).expand(2, 3, 5, 8),
        torch.randn(1 << 20).as_strided((2, 2, 2, 8), (500_000, 100_000, 10_000, 1)),
    ],
    ids=["contiguous", "part of a projection", "features apart", "expanded", "huge strides"],
)
def test_any_memory_layout_is_computed(x):
    assert supports(x, 0, ROTARY, True, 1e-6)
    (out, grad), (expected, expected_grad) = run_both(x, 0, ROTARY, True)
    torch.testing.assert_close(out, expected, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(grad, expected_grad, rtol=1e-5, atol=1e-5)


def test_empty_inputs_are_left_to_torch():
    x = torch.randn(2, 0, 3, 4).transpose(1, 2)
    assert normalize_and_rotate(x, 0, ROTARY, True, 1e-6).shape == (2, 3, 0, 4)


def test_nan_stays_in_its_vector():
    x = torch.randn(1, 2, 3, 6)
    x[0, 1, 2, 3] = torch.nan
    out = normalize_and_rotate(x, 0, ROTARY, True, 1e-6)
    assert out[0, 1, 2].isnan().all()
    assert out.isnan().sum() == 6


def test_tables_made_in_inference_mode_can_be_used_for_training():
    position = RotaryPositions(77.0)
    with torch.inference_mode():
        normalize_and_rotate(torch.randn(1, 1, 3, 4), 0, position, True, 1e-6)
    x = torch.randn(1, 1, 3, 4, requires_grad=True)
    normalize_and_rotate(x, 0, position, True, 1e-6).sum().backward()
    assert x.grad is not None


def test_the_operator_is_registered_correctly():
    assert kernels_available()
    x = torch.randn(2, 3, 5, 8).transpose(1, 2).requires_grad_()
    cos, sin = ROTARY.cos_sin(x, 0)
    torch.library.opcheck(normalize_rotate.registered, (x, cos, sin, True, 1e-6))
