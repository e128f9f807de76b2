"""Linear attention: the quadratic definition, in linear time."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from neural.modules.attention.linear import Linear
from neural.modules.mask import Mask

B, H, D, V = 2, 3, 5, 7


def three(queries: int, keys: int, dtype: torch.dtype = torch.float64) -> list[torch.Tensor]:
    torch.manual_seed(0)
    return [
        torch.randn(B, H, time, width, dtype=dtype, requires_grad=True)
        for time, width in ((queries, D), (keys, D), (keys, V))
    ]


def test_it_is_the_formula_of_the_paper():
    q, k, _ = three(3, 4)
    w = Linear().weights(q, k, Mask())

    def feature(x: torch.Tensor) -> torch.Tensor:
        return torch.where(x > 0, x + 1, x.exp())

    for i in range(3):
        likeness = torch.stack([(feature(q[0, 0, i]) * feature(k[0, 0, j])).sum() for j in range(4)])
        torch.testing.assert_close(w[0, 0, i], likeness / likeness.sum())


@pytest.mark.parametrize(("queries", "keys"), [(300, 300), (170, 300), (1, 300), (300, 170), (64, 64), (65, 129)])
@pytest.mark.parametrize("padded", [False, True])
def test_across_the_borders_of_blocks_it_is_the_quadratic_definition(queries, keys, padded):
    q, k, v = three(queries, keys)
    real = torch.rand(B, keys) > 0.3 if padded else None
    mask = Mask(causal=True, keys=real)
    found, wanted = Linear().mix(q, k, v, mask), Linear().weights(q, k, mask) @ v
    torch.testing.assert_close(found, wanted)
    towards = torch.randn_like(found)
    for one, other in zip(*(torch.autograd.grad(to, [q, k, v], towards) for to in (found, wanted)), strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("causal", [False, True])
def test_four_times_the_length_is_four_times_the_work(causal):
    def work(time: int) -> int:
        q, k, v = three(time, time)
        with FlopCounterMode(display=False) as counter:
            Linear().mix(q, k, v, Mask(causal=causal)).sum().backward()
        return counter.get_total_flops()

    assert work(4096) == pytest.approx(4 * work(1024), rel=0.01)


@pytest.mark.parametrize("causal", [False, True])
def test_features_that_vanish_give_zeros_and_finite_gradients(causal):
    q, k, v = three(7, 7, torch.float32)
    q = (q - 200).detach().requires_grad_()   # φ is 0 to the last digit
    mixed = Linear().mix(q, k, v, Mask(causal=causal))
    assert (mixed == 0).all()
    assert all(one.isfinite().all() for one in torch.autograd.grad(mixed.sum(), [q, k, v]))


def test_a_steep_bias_per_key_is_exact_when_nobody_looks_ahead():
    q, k, v = three(9, 9, torch.float32)
    slope = 300.0 * torch.arange(9.0).expand(1, H, 9)   # exp(2400) is no number
    mixed = Linear().mix(q, k, v, Mask(causal=True, key_bias=slope))
    torch.testing.assert_close(mixed, v)   # everybody sees itself alone
    whole = Linear().mix(q, k, v, Mask(key_bias=slope))
    torch.testing.assert_close(whole, v[:, :, -1:].expand_as(whole))


def test_dropout_drops_whole_keys_of_a_head():
    torch.manual_seed(0)
    x, v = torch.zeros(1, 1, 8, 2), torch.eye(8).view(1, 1, 8, 8)   # equal weights; the result shows them
    w = Linear().mix(x, x, v, Mask(), dropout=0.5)[0, 0]
    assert (w == w[0]).all()
    assert set(w[0].tolist()) == {0.0, 0.25}
