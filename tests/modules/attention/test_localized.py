"""Localized attention: the kernel, its plain torch body, and the definition are one."""

from contextlib import nullcontext

import pytest
import torch

from neural.language.check import check
from neural.modules.attention.localized import Localized, in_blocks
from neural.modules.attention.sparse import Sparse
from neural.modules.compiled import numba_is_there, plain_torch
from neural.modules.mask import Mask
from neural.standard import CATALOGUE


def three(n, dtype=torch.float64):
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
    assert numba_is_there()
    qkv = three(n)
    keys = torch.arange(n) < torch.tensor([[n], [n // 3]]) if padded else None
    mask, mechanism = Mask(causal=causal, keys=keys), Localized(window=window)
    wanted = result_and_gradients(lambda: mechanism.weights(*qkv[:2], mask) @ qkv[2], qkv)
    kernel = result_and_gradients(lambda: mechanism.mix(*qkv, mask), qkv)
    with plain_torch():
        blocks = result_and_gradients(lambda: mechanism.mix(*qkv, mask), qkv)
    for one, other, right in zip(kernel, blocks, wanted, strict=True):
        torch.testing.assert_close(one, right)
        torch.testing.assert_close(other, right)


def test_the_blocks_are_really_used_without_the_kernel(monkeypatch):
    used = []
    name = "neural.modules.attention.localized.in_blocks"
    monkeypatch.setattr(name, lambda *args: used.append(1) or in_blocks(*args))
    with plain_torch():
        Localized().mix(*three(131), Mask())
    assert used
    Localized().mix(*three(131), Mask())
    assert len(used) == 1


def test_a_hundred_thousand_positions_run_forward_and_backward():
    q, k, v = (torch.randn(1, 1, 100_000, 4, requires_grad=True) for _ in range(3))
    Localized(window=7).mix(q, k, v, Mask()).sum().backward()
    assert all(one.grad.isfinite().all() for one in (q, k, v))


def test_the_kernel_is_a_torch_operator_that_passes_torchs_own_checks():
    from neural.modules.kernels.localized import localized

    q, k, v = (torch.randn(3, 7, 5, dtype=torch.float64, requires_grad=True) for _ in range(3))
    torch.library.opcheck(localized, (q, k, v, torch.ones(1, 7, dtype=torch.bool), 2, False))


@pytest.mark.parametrize("plain", [False, True])
def test_a_window_may_be_wider_than_anything(plain):
    q, k, v = three(70)
    with plain_torch() if plain else nullcontext():
        wide = Localized(window=2**31 - 1).mix(q, k, v, Mask())
    torch.testing.assert_close(wide, Localized(window=141).weights(q, k, Mask()) @ v)


@pytest.mark.parametrize("window", [1, 3, 5, 7])
def test_a_window_sees_as_many_keys_as_it_says(window):
    q = torch.randn(1, 1, 20, 4)
    seen = (Localized(window=window).weights(q, q, Mask()) > 0).sum(dim=-1)
    assert seen[..., window:-window].unique().tolist() == [window]


@pytest.mark.parametrize("entry", [Localized, Sparse])
def test_an_even_width_is_refused_with_the_next_odd_one(entry):
    with pytest.raises(ValueError, match="`window` must be an odd number of 1 or more, got 4"):
        entry(window=4)
    program = f'TransformerEncoder(num_heads=2, attention="{entry.__name__.lower()}", window=4)'
    mistake = check(program, CATALOGUE, fragment=True).mistakes[0]
    assert (mistake.code, mistake.helps) == ("E0222", ("did you mean 5?",))
