"""The kernel of squared ReLU equals the torch version on every level."""

import pytest
import torch

from neural.native.library import available_levels, force_level
from neural.nn.activations import SquaredReLU
from neural.nn.kernel_dispatch import kernels_available, no_kernels
from neural.nn.kernels.squared_relu import squared_relu

LEVELS = available_levels()
pytestmark = pytest.mark.skipif(not LEVELS, reason="the native library is not built")


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("shape", [(1,), (2, 3, 17), (0, 5), (40_009,)])
def test_values_and_gradients_equal_those_of_torch(level, shape):
    x, grad_out = torch.randn(shape, requires_grad=True), torch.randn(shape)
    results = []
    for is_plain in (False, True):
        with force_level(level), no_kernels() if is_plain else torch.enable_grad():
            out = SquaredReLU()(x)
            results.append((out, *torch.autograd.grad(out, x, grad_out)))
    for actual, expected in zip(*results, strict=True):
        torch.testing.assert_close(actual, expected)


def test_nan_stays_nan():
    assert SquaredReLU()(torch.tensor([1.0, torch.nan, -1.0])).isnan().tolist() == [
        False,
        True,
        False,
    ]


def test_a_second_derivative_is_an_error_not_zero():
    x = torch.randn(5, requires_grad=True)
    (grad,) = torch.autograd.grad(SquaredReLU()(x).sum(), x, create_graph=True)
    with pytest.raises(RuntimeError):
        torch.autograd.grad(grad.sum(), x)


def test_dispatch_modes_see_the_registered_operator():
    from torch.utils._python_dispatch import TorchDispatchMode

    class RecordingMode(TorchDispatchMode):
        names: list[str] = []

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            self.names.append(str(func))
            return func(*args, **(kwargs or {}))

    with RecordingMode():
        SquaredReLU()(torch.randn(3))
    assert "neural.squared_relu.default" in RecordingMode.names


def test_the_operator_is_registered_correctly():
    assert kernels_available()
    torch.library.opcheck(squared_relu.registered, (torch.randn(3, 5, requires_grad=True),))
