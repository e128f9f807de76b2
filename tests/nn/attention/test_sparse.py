"""Sparse attention: the pattern, and gathered attention against it."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from neural.nn.attention import sparse
from neural.nn.attention.localized import Localized
from neural.nn.attention.self import Self
from neural.nn.attention.sparse import Sparse
from neural.nn.mask import Mask
from neural.testing.fixtures import count_saved_activations, use_math_kernels

B, H, D, V = 2, 3, 5, 7


def random_qkv(queries: int, keys: int) -> list[torch.Tensor]:
    torch.manual_seed(0)
    return [
        torch.randn(B, H, time, width, dtype=torch.float64, requires_grad=True)
        for time, width in ((queries, D), (keys, D), (keys, V))
    ]


def pattern(mechanism: Sparse, time: int, mask: Mask = Mask()) -> list[str]:  # noqa: B008 (frozen)
    q, k, _ = random_qkv(time, time)
    return [
        "".join(".x"[is_visible] for is_visible in row)
        for row in (mechanism.weights(q, k, mask)[0, 0] > 0).int().tolist()
    ]


def test_the_pattern_is_the_documented_one():
    assert pattern(Sparse(window=3, global_tokens=2, stride=5), 12) == [
        "xxxxxxxxxxxx",  # global
        "xxxxxxxxxxxx",
        "xxxx.x....x.",  # its neighbours, the global ones, 5 and 10
        "xxxxxx....x.",
        "xx.xxx....x.",
        "xx..xxx...x.",
        "xx...xxx..x.",
        "xx...xxxx.x.",
        "xx...x.xxxx.",
        "xx...x..xxx.",
        "xx...x...xxx",
        "xx...x....xx",
    ]


def test_causal_global_positions_see_only_earlier_positions():
    assert pattern(Sparse(window=3, global_tokens=1), 6, Mask(causal=True)) == [
        "x.....",
        "xx....",
        "xxx...",
        "x.xx..",
        "x..xx.",
        "x...xx",
    ]


def test_random_blocks_are_complete_earlier_blocks_that_depend_on_the_seed():
    plain, drawn = (
        pattern(Sparse(window=1, global_tokens=0, random_blocks=n, block=3), 12) for n in (0, 1)
    )
    assert plain == ["." * i + "x" + "." * (11 - i) for i in range(12)]
    for first in range(0, 12, 3):
        added = [row[:i] + "." + row[i + 1 :] for i, row in enumerate(drawn)][first : first + 3]
        blocks = {
            block
            for block in range(4)
            if any("x" in row[3 * block : 3 * block + 3] for row in added)
        }
        assert len(blocks) == 1
        assert blocks <= set(range(first // 3 + 1)), "none ahead"
    longer = pattern(Sparse(window=1, global_tokens=0, random_blocks=1, block=3), 30)
    assert [row[:12] for row in longer[:12]] == drawn, "a longer text keeps the pattern"
    others = [
        pattern(Sparse(window=1, global_tokens=0, random_blocks=1, block=3, seed=seed), 30)
        for seed in range(4)
    ]
    assert sum(other == longer for other in others) == 1


def test_random_blocks_are_uniformly_distributed():
    drawn = (
        Sparse(random_blocks=5, seed=3).draw_random_blocks(torch.full((1,), 9)).flatten().tolist()
    )
    assert all(0 <= block <= 9 for block in drawn)
    samples = torch.stack(
        [
            Sparse(random_blocks=50, seed=seed).draw_random_blocks(torch.tensor(9))
            for seed in range(200)
        ]
    )
    frequency = torch.bincount(samples.flatten(), minlength=10) / samples.numel()
    torch.testing.assert_close(frequency, torch.full((10,), 0.1), rtol=0, atol=0.01)


def test_a_window_equals_localized_and_a_full_pattern_equals_self():
    q, k, v = random_qkv(11, 11)
    window_only = Sparse(window=5, global_tokens=0).attend(q, k, v, Mask())
    torch.testing.assert_close(window_only, Localized(window=5).attend(q, k, v, Mask()))
    for full in (
        Sparse(window=1, global_tokens=11),
        Sparse(window=1, global_tokens=0, stride=1),
        Sparse(window=99),
    ):
        torch.testing.assert_close(full.attend(q, k, v, Mask()), Self().attend(q, k, v, Mask()))


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize(
    "mechanism",
    [
        Sparse(window=5, global_tokens=0, block=8),
        Sparse(window=1, global_tokens=3, block=8),
        Sparse(window=7, global_tokens=2, stride=13, block=8),
        Sparse(window=3, random_blocks=3, block=4, seed=5),
        Sparse(window=41, global_tokens=9, stride=7, random_blocks=2, block=16),
        Sparse(window=3, global_tokens=999),
    ],
    ids=repr,
)
def test_gathered_attention_equals_the_definition(mechanism, causal, padded, monkeypatch):
    monkeypatch.setattr(sparse, "MIN_GATHER_RATIO", 0)
    q, k, v = random_qkv(101, 101)
    key_mask = torch.rand(B, 101) > 0.4 if padded else None
    mask = Mask(causal=causal, keys=key_mask)
    assert mechanism.should_gather(101, 101)
    actual, expected = mechanism.attend(q, k, v, mask), mechanism.weights(q, k, mask) @ v
    torch.testing.assert_close(actual, expected)
    grad_out = torch.randn_like(actual)
    for actual_grad, expected_grad in zip(
        *(torch.autograd.grad(out, [q, k, v], grad_out) for out in (actual, expected)), strict=True
    ):
        torch.testing.assert_close(actual_grad, expected_grad)


def test_gathered_flops_are_linear_in_the_length_and_predicted():
    mechanism = Sparse(window=9, global_tokens=2, random_blocks=1, block=16)

    def count_flops(time: int) -> int:
        q, k, v = random_qkv(time, time)
        with use_math_kernels(), FlopCounterMode(display=False) as counter:
            mechanism.attend(q, k, v[..., :D], Mask())
        assert counter.get_total_flops() == 2 * B * mechanism.cost(H, time, time, D).multiply_adds
        return counter.get_total_flops()

    assert mechanism.should_gather(1024, 1024)
    assert count_flops(4096) == pytest.approx(4 * count_flops(1024), rel=0.01)
    count_flops(100)  # short: full attention under the pattern


def test_saved_activations_are_predicted():
    mechanism = Sparse(window=9, global_tokens=2, random_blocks=1, block=16)

    class Attention(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return mechanism.attend(*x.unbind(dim=2), Mask())

    saved = count_saved_activations(Attention(), torch.randn(2, 3, 3, 512, 16, requires_grad=True))
    assert 0.8 * saved <= mechanism.cost(3, 512, 512, 16).activations <= 1.25 * saved


@pytest.mark.parametrize("argument", ["window", "stride", "block"])
def test_a_bad_argument_is_named(argument):
    with pytest.raises(ValueError, match=f"Sparse: `{argument}` must be"):
        Sparse(**{argument: 0})
