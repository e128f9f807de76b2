"""Localized attention: the kernel and its plain torch body equal the definition."""

from contextlib import nullcontext

import pytest
import torch

from neural.language.check import check
from neural.native.library import available_levels, force_level
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
@pytest.mark.parametrize("n", [65, 131, 300])
def test_the_kernel_and_the_blocks_equal_the_definition(window, causal, padded, n):
    assert kernels_available()
    exact = random_qkv(n)
    keys = torch.arange(n) < torch.tensor([[n], [n // 3]]) if padded else None
    mask, mechanism = Mask(causal=causal, keys=keys), Localized(window=window)
    expected = result_and_gradients(lambda: mechanism.weights(*exact[:2], mask) @ exact[2], exact)
    with no_kernels():
        blocks = result_and_gradients(lambda: mechanism.attend(*exact, mask), exact)
    for by_blocks, by_definition in zip(blocks, expected, strict=True):
        torch.testing.assert_close(by_blocks, by_definition)
    qkv = [tensor.detach().float().requires_grad_() for tensor in exact]
    for level in available_levels():
        with force_level(level):
            kernel = result_and_gradients(lambda: mechanism.attend(*qkv, mask), qkv)
        for by_kernel, by_definition in zip(kernel, expected, strict=True):
            # gradients here are up to 300 times as large as those of a sum
            scale = by_definition.abs().max()
            error = (by_kernel.double() - by_definition).abs().max()
            assert error <= 2e-6 * scale, (level, float(error / scale))


@pytest.mark.parametrize("level", available_levels())
@pytest.mark.parametrize(("queries", "keys"), [(1, 9), (9, 1), (5, 40), (40, 5), (1, 1)])
@pytest.mark.parametrize(("width", "value_width"), [(1, 1), (3, 7), (16, 8), (17, 33), (64, 70)])
def test_all_shapes_on_every_level(level, queries, keys, width, value_width):
    torch.manual_seed(1)
    sizes = ((queries, width), (keys, width), (keys, value_width))
    qkv = [torch.randn(2, 2, *size, requires_grad=True) for size in sizes]
    exact = [tensor.detach().double().requires_grad_() for tensor in qkv]
    mechanism = Localized(window=5)
    for causal in (False, True):
        mask = Mask(causal=causal)
        expected = result_and_gradients(
            lambda mask=mask: mechanism.weights(*exact[:2], mask) @ exact[2], exact
        )
        with force_level(level):
            actual = result_and_gradients(lambda mask=mask: mechanism.attend(*qkv, mask), qkv)
        for ours, definition in zip(actual, expected, strict=True):
            torch.testing.assert_close(ours.double(), definition, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("level", available_levels())
@pytest.mark.parametrize("width", [8, 32, 128])
@pytest.mark.parametrize("size", [1e4, 1e5, 1e6])
def test_large_scores_have_finite_weights_on_every_level(level, width, size):
    """Scores of 1e9 to 1e12: the largest of a row takes (nearly) all of the weight."""
    torch.manual_seed(0)
    q, k = (size * torch.randn(1, 2, 40, width) for _ in range(2))
    v, mechanism, mask = torch.randn(1, 2, 40, width), Localized(window=7), Mask()
    weights = mechanism.weights(q.double(), k.double(), mask)
    is_clear = weights.amax(-1) > 1 - 1e-9  # rounding does not change the largest
    with force_level(level):
        out = mechanism.attend(q, k, v, mask)
    expected = (weights @ v.double()).float()
    assert is_clear.float().mean() > 0.9
    torch.testing.assert_close(out[is_clear], expected[is_clear], rtol=1e-4, atol=1e-4)


def test_strided_tensors_give_the_same_as_contiguous_ones():
    """Heads split from one projection, a reversed axis, and a gradient expanded from one number."""
    torch.manual_seed(2)
    projected = torch.randn(2, 50, 3 * 4 * 8)
    split = [part.unflatten(-1, (4, 8)).transpose(1, 2) for part in projected.chunk(3, dim=-1)]
    flipped = [part.transpose(-1, -2).contiguous().transpose(-1, -2) for part in split]
    mechanism = Localized(window=7)
    results = []
    for tensors in (split, flipped, [part.contiguous() for part in split]):
        leaves = [tensor.detach().requires_grad_() for tensor in tensors]
        out = mechanism.attend(*leaves, Mask())
        results.append([out, *torch.autograd.grad(out.sum(), leaves)])
    for strided in results[:2]:
        for ours, contiguous in zip(strided, results[2], strict=True):
            torch.testing.assert_close(ours, contiguous, rtol=0, atol=0)


def test_the_result_does_not_depend_on_the_number_of_threads():
    qkv, threads = random_qkv(300, torch.float32), torch.get_num_threads()
    mechanism = Localized(window=7)
    results = []
    try:
        for count in (1, 2, 3):
            torch.set_num_threads(count)
            results.append(result_and_gradients(lambda: mechanism.attend(*qkv, Mask()), qkv))
    finally:
        torch.set_num_threads(threads)
    for other in results[1:]:
        assert all(map(torch.equal, results[0], other))


def test_the_blocks_are_used_without_the_kernel(monkeypatch):
    calls = []

    def count_calls(*args):
        calls.append(args)
        return attend_in_blocks(*args)

    monkeypatch.setattr(localized, "attend_in_blocks", count_calls)
    qkv = random_qkv(131, torch.float32)
    with no_kernels():
        Localized().attend(*qkv, Mask())
    assert len(calls) == 1
    Localized().attend(*qkv, Mask())
    assert len(calls) == 1


def test_a_hundred_thousand_positions_run_forward_and_backward():
    q, k, v = (torch.randn(1, 1, 100_000, 4, requires_grad=True) for _ in range(3))
    Localized(window=7).attend(q, k, v, Mask()).sum().backward()
    assert all(tensor.grad.isfinite().all() for tensor in (q, k, v))


def test_the_kernel_is_a_torch_operator_that_passes_torchs_own_checks():
    from neural.nn.kernels.localized import localized as kernel

    q, k, v = (torch.randn(2, 3, 7, 5, requires_grad=True) for _ in range(3))
    torch.library.opcheck(kernel, (q, k, v, torch.ones(1, 7, dtype=torch.bool), 2, False))
    strided = [torch.randn(2, 7, 3, 5).transpose(1, 2).requires_grad_() for _ in range(3)]
    torch.library.opcheck(kernel, (*strided, None, 1, True))


def test_a_compiled_model_contains_the_operator():
    graphs = []

    def keep_graph(graph, _inputs):
        graphs.append(graph)
        return graph

    attend = _Attention()
    q, k, v = (torch.randn(1, 2, 40, 8, requires_grad=True) for _ in range(3))
    out = torch.compile(attend, fullgraph=True, backend=keep_graph)(q, k, v)
    torch.testing.assert_close(out, attend(q, k, v))
    assert "neural.localized" in graphs[0].print_readable(print_output=False)
    exported = torch.export.export(attend, (q, k, v))
    assert "neural.localized" not in str(exported.graph), "a file must run without this package"


class _Attention(torch.nn.Module):
    mechanism = Localized(window=5)

    def forward(self, q, k, v):
        return self.mechanism.attend(q, k, v, Mask(causal=True))


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
