"""Linear attention equals its quadratic definition in linear time."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from neural.nn.attention.linear import Linear
from neural.nn.mask import Mask

B, H, D, V = 2, 3, 5, 7


def random_qkv(queries: int, keys: int, dtype: torch.dtype = torch.float64) -> list[torch.Tensor]:
    torch.manual_seed(0)
    return [
        torch.randn(B, H, time, width, dtype=dtype, requires_grad=True)
        for time, width in ((queries, D), (keys, D), (keys, V))
    ]


def test_it_is_the_formula_of_the_paper():
    q, k, _ = random_qkv(3, 4)
    w = Linear().weights(q, k, Mask())

    def feature(x: torch.Tensor) -> torch.Tensor:
        return torch.where(x > 0, x + 1, x.exp())

    for i in range(3):
        products = torch.stack(
            [(feature(q[0, 0, i]) * feature(k[0, 0, j])).sum() for j in range(4)]
        )
        torch.testing.assert_close(w[0, 0, i], products / products.sum())


@pytest.mark.parametrize(
    ("queries", "keys"), [(300, 300), (170, 300), (1, 300), (300, 170), (64, 64), (65, 129)]
)
@pytest.mark.parametrize("padded", [False, True])
def test_causal_blocks_equal_the_quadratic_definition(queries, keys, padded):
    q, k, v = random_qkv(queries, keys)
    key_mask = torch.rand(B, keys) > 0.3 if padded else None
    mask = Mask(causal=True, keys=key_mask)
    actual, expected = Linear().attend(q, k, v, mask), Linear().weights(q, k, mask) @ v
    torch.testing.assert_close(actual, expected)
    grad_out = torch.randn_like(actual)
    for actual_grad, expected_grad in zip(
        *(torch.autograd.grad(out, [q, k, v], grad_out) for out in (actual, expected)), strict=True
    ):
        torch.testing.assert_close(actual_grad, expected_grad)


@pytest.mark.parametrize("causal", [False, True])
def test_flops_are_linear_in_the_length(causal):
    def count_flops(time: int) -> int:
        q, k, v = random_qkv(time, time)
        with FlopCounterMode(display=False) as counter:
            Linear().attend(q, k, v, Mask(causal=causal)).sum().backward()
        return counter.get_total_flops()

    assert count_flops(4096) == pytest.approx(4 * count_flops(1024), rel=0.01)


@pytest.mark.parametrize("causal", [False, True])
def test_features_that_vanish_give_zeros_and_finite_gradients(causal):
    q, k, v = random_qkv(7, 7, torch.float32)
    q = (q - 200).detach().requires_grad_()  # φ underflows to 0
    output = Linear().attend(q, k, v, Mask(causal=causal))
    assert (output == 0).all()
    assert all(grad.isfinite().all() for grad in torch.autograd.grad(output.sum(), [q, k, v]))


def test_a_steep_key_bias_is_exact_in_causal_attention():
    q, k, v = random_qkv(9, 9, torch.float32)
    slope = 300.0 * torch.arange(9.0).expand(1, H, 9)  # exp(2400) overflows
    output = Linear().attend(q, k, v, Mask(causal=True, key_bias=slope))
    torch.testing.assert_close(output, v)  # each query sees only itself
    full = Linear().attend(q, k, v, Mask(key_bias=slope))
    torch.testing.assert_close(full, v[:, :, -1:].expand_as(full))


def test_dropout_drops_keys_of_a_head():
    torch.manual_seed(0)
    # Equal weights; with an identity matrix as values the output shows them.
    x, v = torch.zeros(1, 1, 8, 2), torch.eye(8).view(1, 1, 8, 8)
    w = Linear().attend(x, x, v, Mask(), dropout=0.5)[0, 0]
    assert (w == w[0]).all()
    assert set(w[0].tolist()) == {0.0, 0.25}
