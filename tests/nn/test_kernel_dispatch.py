"""When a kernel runs, and when the plain function in torch."""

from types import SimpleNamespace

import pytest
import torch

from neural.nn.kernel_dispatch import kernels_available, no_kernels, use_kernel


def double_by_kernel(x):
    return 2 * x + 0 * x


@pytest.fixture
def double():
    """A function with a kernel for vectors; both count their calls."""
    calls = []

    def run(x):
        calls.append("kernel")
        return double_by_kernel(x)

    kernel = SimpleNamespace(supports=lambda x: x.ndim == 1, run=run)

    @use_kernel(lambda: kernel)
    def function(x):
        calls.append("plain")
        return 2 * x

    function.calls = calls
    return function


def test_the_kernel_runs_where_it_supports_a_call(double):
    double(torch.ones(3))
    double(torch.ones(3, 3))
    assert double.calls == ["kernel", "plain"]


def test_the_plain_function_runs_without_kernels(double):
    with no_kernels():
        assert not kernels_available()
        double(torch.ones(3))
    assert double.calls == ["plain"]


@pytest.mark.parametrize("transform", [torch.func.vmap, torch.func.vjp])
def test_the_plain_function_runs_in_transforms(double, transform):
    if transform is torch.func.vmap:
        torch.func.vmap(double)(torch.ones(2, 3))
    else:
        torch.func.vjp(double, torch.ones(3))
    assert set(double.calls) == {"plain"}
