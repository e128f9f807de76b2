"""Localized attention: the kernel and its plain torch body equal the definition."""

from contextlib import nullcontext

import pytest
import torch

from neural.language.check import check
from neural.nn.attention import localized
from neural.nn.attention.localized import Localized, attend_in_blocks
from neural.nn.attention.sparse import Sparse
from neural.nn.kernel_dispatch import kernels_available, no_kernels
from neural.nn.mask import Mask
from neural.optim.catalogue import CATALOGUE


def random_qkv(n, dtype=torch.float64):
    torch.manual_seed(0)
    return [torch.randn(2, 3, n, 11, dtype=dtype, requires_grad=True) for _ in range(3)]


def result_and_gradients(run, leaves):
    out = run()
    return [out, *torch.autograd.grad(out, leaves, torch.ones_like(out).cumsum(dim=-2))]


@pytest.mark.parametrize("window", [1, 3, 7, 65])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("n", [65, 131])
def test_the_kernel_and_the_blocks_equal_the_definition(window, causal, padded, n):
    assert kernels_available()
    qkv = random_qkv(n)
    keys = torch.arange(n) < torch.tensor([[n], [n // 3]]) if padded else None
    mask, mechanism = Mask(causal=causal, keys=keys), Localized(window=window)
    expected = result_and_gradients(lambda: mechanism.weights(*qkv[:2], mask) @ qkv[2], qkv)
    kernel = result_and_gradients(lambda: mechanism.attend(*qkv, mask), qkv)
    with no_kernels():
        blocks = result_and_gradients(lambda: mechanism.attend(*qkv, mask), qkv)
    for by_kernel, by_blocks, by_definition in zip(kernel, blocks, expected, strict=True):
        torch.testing.assert_close(by_kernel, by_definition)
        torch.testing.assert_close(by_blocks, by_definition)


def test_the_blocks_are_used_without_the_kernel(monkeypatch):
    calls = []

    def count_calls(*args):
        calls.append(args)
        return attend_in_blocks(*args)

    monkeypatch.setattr(localized, "attend_in_blocks", count_calls)
    with no_kernels():
        Localized().attend(*random_qkv(131), Mask())
    assert len(calls) == 1
    Localized().attend(*random_qkv(131), Mask())
    assert len(calls) == 1


def test_a_hundred_thousand_positions_run_forward_and_backward():
    q, k, v = (torch.randn(1, 1, 100_000, 4, requires_grad=True) for _ in range(3))
    Localized(window=7).attend(q, k, v, Mask()).sum().backward()
    assert all(tensor.grad.isfinite().all() for tensor in (q, k, v))


def test_the_kernel_is_a_torch_operator_that_passes_torchs_own_checks():
    from neural.nn.kernels.localized import localized as kernel

    q, k, v = (torch.randn(3, 7, 5, dtype=torch.float64, requires_grad=True) for _ in range(3))
    torch.library.opcheck(kernel, (q, k, v, torch.ones(1, 7, dtype=torch.bool), 2, False))


@pytest.mark.parametrize("plain", [False, True])
def test_a_window_may_be_wider_than_the_sequence(plain):
    q, k, v = random_qkv(70)
    with no_kernels() if plain else nullcontext():
        wide = Localized(window=2**31 - 1).attend(q, k, v, Mask())
    torch.testing.assert_close(wide, Localized(window=141).weights(q, k, Mask()) @ v)


@pytest.mark.parametrize("window", [1, 3, 5, 7])
def test_a_window_sees_as_many_keys_as_it_says(window):
    q = torch.randn(1, 1, 20, 4)
    visible = (Localized(window=window).weights(q, q, Mask()) > 0).sum(dim=-1)
    assert visible[..., window:-window].unique().tolist() == [window]


@pytest.mark.parametrize("entry", [Localized, Sparse])
def test_an_even_width_is_refused_with_the_next_odd_one(entry):
    with pytest.raises(ValueError, match="`window` must be an odd number of 1 or more, got 4"):
        entry(window=4)
    program = f'TransformerEncoder(num_heads=2, attention="{entry.__name__.lower()}", window=4)'
    error = check(program, CATALOGUE, fragment=True).errors[0]
    assert (error.code, error.helps) == ("E0222", ("did you mean 5?",))
