"""Any shape and any strides give the answer of plain torch, never a crash."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from neural.nn.activations import SquaredReLU
from neural.nn.attention import registry
from neural.nn.kernel_dispatch import no_kernels
from neural.nn.mask import Mask
from neural.testing.attention_rules import has_native_kernel

MECHANISMS = [name for name in registry.names() if has_native_kernel(registry.get(name))]
LAYOUTS = ("contiguous", "heads last", "features first", "every second", "expanded", "offset")
small_sizes = st.integers(0, 20)


def lay_out(tensor: torch.Tensor, layout: str) -> torch.Tensor:
    """The same values in another memory layout, as a leaf."""
    tensor = tensor.detach()
    if layout == "heads last":
        tensor = tensor.transpose(1, 2).contiguous().transpose(1, 2)
    elif layout == "features first":
        tensor = tensor.transpose(-1, -2).contiguous().transpose(-1, -2)
    elif layout == "every second":
        wide = torch.full((*tensor.shape[:-1], 2 * tensor.shape[-1]), float("nan"))
        wide[..., ::2] = tensor
        tensor = wide[..., ::2]
    elif layout == "expanded" and tensor.numel():
        tensor = tensor[:, :1].expand(tensor.shape)
    elif layout == "offset":  # addresses that are no multiple of a vector's size
        memory = torch.full((tensor.numel() + 3,), float("nan"))
        memory[3:] = tensor.flatten()
        tensor = memory[3:].view(tensor.shape)
    return tensor.requires_grad_()


@pytest.mark.parametrize("name", MECHANISMS)
@settings(max_examples=30, deadline=None, derandomize=True)
@given(
    batch=st.integers(0, 3),
    heads=st.integers(0, 3),
    queries=small_sizes,
    keys=small_sizes,
    widths=st.tuples(st.integers(1, 40), st.integers(1, 40)),
    layouts=st.tuples(*[st.sampled_from(LAYOUTS)] * 3),
    causal=st.booleans(),
    padded=st.booleans(),
    seed=st.integers(0, 99),
)
def test_attention(name, batch, heads, queries, keys, widths, layouts, causal, padded, seed):
    torch.manual_seed(seed)
    mechanism = registry.get(name).example()
    sizes = ((queries, widths[0]), (keys, widths[0]), (keys, widths[1]))
    q, k, v = (
        lay_out(torch.randn(batch, heads, *size), layout)
        for size, layout in zip(sizes, layouts, strict=True)
    )
    mask = Mask(causal=causal, keys=torch.rand(batch, keys) > 0.3 if padded else None)
    extra = mechanism.example_extra(q, k)
    leaves = [q, k, v] if extra is None else [q, k, v, extra]

    def run():
        out = mechanism.attend(q, k, v, mask, extra=extra)
        # expanded, as the gradient of a sum is
        grad_out = torch.ones(()).expand(out.shape)
        return out, *torch.autograd.grad(out, leaves, grad_out, allow_unused=True)

    with no_kernels():
        expected = run()
    for ours, plain in zip(run(), expected, strict=True):
        if ours is None or plain is None:
            assert all(value is None or not value.any() for value in (ours, plain))
        else:
            # gradients that cancel exactly, as with a single key, leave rounding errors of sums
            torch.testing.assert_close(ours, plain, rtol=1e-4, atol=1e-4)


@settings(max_examples=50, deadline=None, derandomize=True)
@given(st.lists(small_sizes, min_size=0, max_size=4), st.sampled_from(("contiguous", "offset")))
def test_squared_relu(shape, layout):
    x = lay_out(torch.randn(shape), layout)
    out = SquaredReLU()(x)
    assert torch.equal(out, x.relu().square())
    (gradient,) = torch.autograd.grad(out, x, torch.ones(()).expand(out.shape))
    assert torch.equal(gradient, 2 * x.relu())


def test_strides_beyond_all_memory_are_never_followed():
    """An axis of size 1 may have any stride."""
    q = torch.randn(5, 8).as_strided((1, 1, 5, 8), (2**40, 2**50, 8, 1))
    for name in MECHANISMS:
        mechanism = registry.get(name).example()
        extra = mechanism.example_extra(q, q)
        ours = mechanism.attend(q, q, q, Mask(), extra=extra)
        with no_kernels():
            plain = mechanism.attend(q, q, q, Mask(), extra=extra)
        torch.testing.assert_close(ours, plain)
