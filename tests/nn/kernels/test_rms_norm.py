"""The kernel of the RMS norm equals torch's on every level; hooks of the module still run."""

import pytest
import torch

from neural.native.library import available_levels, force_level
from neural.nn.kernel_dispatch import kernels_available, no_kernels
from neural.nn.kernels.rms_norm import rms_norm, supports
from neural.nn.transformer_block import apply_norm

LEVELS = available_levels()
pytestmark = pytest.mark.skipif(not LEVELS, reason="the native library is not built")


def create_norm(width):
    """An RMS norm with weights other than 1."""
    norm = torch.nn.RMSNorm(width, eps=1e-6)
    with torch.no_grad():
        norm.weight.copy_(torch.randn(width))
    return norm


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("shape", [(3, 7, 13), (1, 1), (131, 16), (2, 65, 37), (5, 128)])
def test_values_and_gradients_equal_those_of_torch(level, shape):
    norm, grad_out = create_norm(shape[-1]), torch.randn(shape)
    x = torch.randn(shape, requires_grad=True)
    assert supports(norm, x)
    results = []
    for is_plain in (False, True):
        with force_level(level), no_kernels() if is_plain else torch.enable_grad():
            out = apply_norm(norm, x)
            results.append((out, *torch.autograd.grad(out, (x, norm.weight), grad_out)))
    for actual, expected in zip(*results, strict=True):
        torch.testing.assert_close(actual, expected, rtol=1e-5, atol=2e-5)


def test_results_do_not_depend_on_the_number_of_threads():
    norm, x = create_norm(24), torch.randn(300, 24)
    threads, grads = torch.get_num_threads(), []
    try:
        for count in (1, 2, 3):
            torch.set_num_threads(count)
            norm.zero_grad()
            apply_norm(norm, x).square().sum().backward()
            grads.append(norm.weight.grad.clone())
    finally:
        torch.set_num_threads(threads)
    assert torch.equal(grads[0], grads[1])
    assert torch.equal(grads[0], grads[2])


def test_hooks_see_the_same_output():
    norm, x, outputs = create_norm(8), torch.randn(2, 3, 8), []
    plain_output = apply_norm(norm, x)
    norm.register_forward_hook(lambda module, inputs, output: outputs.append(output))
    assert torch.equal(apply_norm(norm, x), plain_output)
    assert torch.equal(outputs[0], plain_output)
    assert "forward" not in vars(norm)


@pytest.mark.parametrize(
    ("norm", "x"),
    [
        (torch.nn.RMSNorm(8), torch.randn(2, 8)),
        (torch.nn.RMSNorm((2, 8), eps=1e-6), torch.randn(3, 2, 8)),
        (torch.nn.RMSNorm(8, eps=1e-6, elementwise_affine=False), torch.randn(2, 8)),
        (torch.nn.LayerNorm(8), torch.randn(2, 8)),
        (torch.nn.RMSNorm(8, eps=1e-6), torch.randn(8, 2).T),
        (torch.nn.RMSNorm(8, eps=1e-6), torch.randn(0, 8)),
        (torch.nn.RMSNorm(8, eps=1e-6).double(), torch.randn(2, 8).double()),
    ],
)
def test_other_norms_and_inputs_are_left_to_torch(norm, x):
    assert not supports(norm, x)
    assert torch.equal(apply_norm(norm, x), norm(x))


def test_nan_stays_in_its_row():
    x = torch.randn(3, 5)
    x[1, 2] = torch.nan
    out = apply_norm(create_norm(5), x)
    assert out.isnan().any(dim=1).tolist() == [False, True, False]


def test_the_operator_is_registered_correctly():
    assert kernels_available()
    arguments = (torch.randn(3, 5, requires_grad=True), torch.randn(5, requires_grad=True), 1e-6)
    torch.library.opcheck(rms_norm.registered, arguments)
