"""Sparse attention: the pattern by hand, and the gathered way against it."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from neural.contract.measured import kept_numbers, plain_kernels
from neural.modules.attention import sparse
from neural.modules.attention.localized import Localized
from neural.modules.attention.self import Self
from neural.modules.attention.sparse import Sparse
from neural.modules.mask import Mask

B, H, D, V = 2, 3, 5, 7


def three(queries: int, keys: int) -> list[torch.Tensor]:
    torch.manual_seed(0)
    return [
        torch.randn(B, H, time, width, dtype=torch.float64, requires_grad=True)
        for time, width in ((queries, D), (keys, D), (keys, V))
    ]


def pattern(mechanism: Sparse, time: int, mask: Mask = Mask()) -> list[str]:  # noqa: B008 (frozen)
    q, k, _ = three(time, time)
    return ["".join(".x"[one] for one in row) for row in (mechanism.weights(q, k, mask)[0, 0] > 0).int().tolist()]


def test_the_pattern_by_hand():
    assert pattern(Sparse(window=3, global_tokens=2, stride=5), 12) == [
        "xxxxxxxxxxxx",   # global
        "xxxxxxxxxxxx",
        "xxxx.x....x.",   # its neighbours, the global ones, 5 and 10
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


def test_causally_even_a_global_position_sees_only_what_came_before():
    assert pattern(Sparse(window=3, global_tokens=1), 6, Mask(causal=True)) == [
        "x.....", "xx....", "xxx...", "x.xx..", "x..xx.", "x...xx",
    ]  # fmt: skip


def test_random_blocks_are_whole_earlier_and_of_the_seed():
    plain, drawn = (pattern(Sparse(window=1, global_tokens=0, random_blocks=n, block=3), 12) for n in (0, 1))
    assert plain == ["." * i + "x" + "." * (11 - i) for i in range(12)]
    for first in range(0, 12, 3):
        added = [row[:i] + "." + row[i + 1 :] for i, row in enumerate(drawn)][first : first + 3]
        blocks = {block for block in range(4) if any("x" in row[3 * block : 3 * block + 3] for row in added)}
        assert len(blocks) == 1
        assert blocks <= set(range(first // 3 + 1)), "none ahead"
    longer = pattern(Sparse(window=1, global_tokens=0, random_blocks=1, block=3), 30)
    assert [row[:12] for row in longer[:12]] == drawn, "a longer text keeps the pattern"
    others = [pattern(Sparse(window=1, global_tokens=0, random_blocks=1, block=3, seed=seed), 30) for seed in range(4)]
    assert sum(one == longer for one in others) == 1


def test_random_blocks_are_spread_evenly():
    drawn = Sparse(random_blocks=5, seed=3).drawn(torch.full((1,), 9)).flatten().tolist()
    assert all(0 <= one <= 9 for one in drawn)
    many = torch.stack([Sparse(random_blocks=50, seed=seed).drawn(torch.tensor(9)) for seed in range(200)])
    share = torch.bincount(many.flatten(), minlength=10) / many.numel()
    torch.testing.assert_close(share, torch.full((10,), 0.1), rtol=0, atol=0.01)


def test_the_window_alone_is_localized_and_everything_is_self():
    q, k, v = three(11, 11)
    alone = Sparse(window=5, global_tokens=0).mix(q, k, v, Mask())
    torch.testing.assert_close(alone, Localized(window=5).mix(q, k, v, Mask()))
    for whole in (Sparse(window=1, global_tokens=11), Sparse(window=1, global_tokens=0, stride=1), Sparse(window=99)):
        torch.testing.assert_close(whole.mix(q, k, v, Mask()), Self().mix(q, k, v, Mask()))


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("mechanism", [
    Sparse(window=5, global_tokens=0, block=8), Sparse(window=1, global_tokens=3, block=8),
    Sparse(window=7, global_tokens=2, stride=13, block=8), Sparse(window=3, random_blocks=3, block=4, seed=5),
    Sparse(window=41, global_tokens=9, stride=7, random_blocks=2, block=16), Sparse(window=3, global_tokens=999),
], ids=repr)  # fmt: skip
def test_the_gathered_way_is_the_pattern(mechanism, causal, padded, monkeypatch):
    monkeypatch.setattr(sparse, "WORTH", 0)
    q, k, v = three(101, 101)
    real = torch.rand(B, 101) > 0.4 if padded else None
    mask = Mask(causal=causal, keys=real)
    assert mechanism.gathers(101, 101)
    found, wanted = mechanism.mix(q, k, v, mask), mechanism.weights(q, k, mask) @ v
    torch.testing.assert_close(found, wanted)
    towards = torch.randn_like(found)
    for one, other in zip(*(torch.autograd.grad(to, [q, k, v], towards) for to in (found, wanted)), strict=True):
        torch.testing.assert_close(one, other)


def test_gathered_work_grows_with_the_length_and_is_the_predicted_one():
    mechanism = Sparse(window=9, global_tokens=2, random_blocks=1, block=16)

    def work(time: int) -> int:
        q, k, v = three(time, time)
        with plain_kernels(), FlopCounterMode(display=False) as counter:
            mechanism.mix(q, k, v[..., :D], Mask())
        assert counter.get_total_flops() == 2 * B * mechanism.cost(H, time, time, D).multiply_adds
        return counter.get_total_flops()

    assert mechanism.gathers(1024, 1024)
    assert work(4096) == pytest.approx(4 * work(1024), rel=0.01)
    work(100)   # short: full attention under the pattern


def test_what_is_kept_is_what_is_predicted():
    mechanism = Sparse(window=9, global_tokens=2, random_blocks=1, block=16)

    class Mixed(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return mechanism.mix(*x.unbind(dim=2), Mask())

    kept = kept_numbers(Mixed(), torch.randn(2, 3, 3, 512, 16, requires_grad=True))
    assert 0.8 * kept <= mechanism.cost(3, 512, 512, 16).activations <= 1.25 * kept


@pytest.mark.parametrize("argument", ["window", "stride", "block"])
def test_a_bad_argument_is_named(argument):
    with pytest.raises(ValueError, match=f"Sparse: `{argument}` must be"):
        Sparse(**{argument: 0})
