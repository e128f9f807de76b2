"""Top-k attention."""

import pytest
import torch

from neural.nn.attention.self import Self
from neural.nn.attention.topk import Topk
from neural.nn.mask import Mask


def make_inputs(*scores: float) -> tuple[torch.Tensor, torch.Tensor]:
    """A query and keys with these scores: heads of width 1 are scaled by 1."""
    return torch.ones(1, 1, 1, 1), torch.tensor(scores).view(1, 1, -1, 1)


def test_known_weights():
    w = Topk(k=2).weights(*make_inputs(0.0, 3.0, 1.0, 2.0), Mask()).flatten()
    torch.testing.assert_close(w, torch.tensor([0, 1 / (1 + torch.e**-1), 0, 1 / (1 + torch.e)]))


def test_of_equal_scores_exactly_k_are_kept():
    w = Topk(k=3).weights(*make_inputs(1.0, 1.0, 1.0, 1.0, 1.0), Mask()).flatten()
    assert sorted(w.tolist()) == pytest.approx([0, 0, 1 / 3, 1 / 3, 1 / 3])


def test_masked_keys_do_not_count_as_top_keys():
    keys = torch.tensor([[True, False, True, True]])
    w = Topk(k=2).weights(*make_inputs(0.0, 9.0, 1.0, 2.0), Mask(keys=keys)).flatten()
    assert (w > 0).tolist() == [False, False, True, True]
    single = Topk(k=3).weights(
        *make_inputs(0.0, 9.0, 1.0, 2.0), Mask(keys=keys & torch.tensor([True, True, False, False]))
    )
    assert single.flatten().tolist() == [1, 0, 0, 0]


@pytest.mark.parametrize("k", [7, 8, 100])
@pytest.mark.parametrize("causal", [False, True])
def test_with_k_for_all_keys_it_equals_self_attention(k, causal):
    torch.manual_seed(0)
    q, key, v = (torch.randn(2, 3, 7, 5, dtype=torch.float64) for _ in range(3))
    mask = Mask(causal=causal)
    torch.testing.assert_close(Topk(k=k).attend(q, key, v, mask), Self().attend(q, key, v, mask))


def test_a_bad_k_is_named():
    with pytest.raises(ValueError, match=r"Topk: `k` must be .*1"):
        Topk(k=0)
