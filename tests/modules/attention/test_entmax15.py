"""1.5-entmax, by the package and in plain torch."""

import entmax
import pytest
import torch

from neural.modules.attention.entmax15 import Entmax15, entmax15
from neural.modules.compiled import plain_torch
from neural.modules.mask import Mask


def test_by_hand():
    # two scores d apart: weights ((d/2 ± √(2 − d²/4)) / 2)², for d < 2; from there on one takes all
    scores = torch.tensor([[0.0, 1.0], [0.0, 2.0], [5.0, 5.0], [0.0, 3.0]])
    low, high = ((1.75**0.5 - 0.5) / 2) ** 2, ((1.75**0.5 + 0.5) / 2) ** 2
    with plain_torch():
        found = entmax15(scores)
    torch.testing.assert_close(found, torch.tensor([[low, high], [0.0, 1.0], [0.5, 0.5], [0.0, 1.0]]))


@pytest.mark.parametrize("keys", [1, 2, 7, 300])
@pytest.mark.parametrize("spread", [0.01, 1.0, 30.0])
def test_plain_torch_is_the_package_in_values_and_gradients(keys, spread):
    torch.manual_seed(0)
    scores = (spread * torch.randn(11, keys, dtype=torch.float64)).requires_grad_()
    towards = torch.randn_like(scores)
    with plain_torch():
        found = entmax15(scores)
    wanted = entmax.entmax15(scores, dim=-1)
    torch.testing.assert_close(found, wanted)
    torch.testing.assert_close(entmax15(scores), wanted)
    gradients = [torch.autograd.grad(one, scores, towards)[0] for one in (found, wanted)]
    torch.testing.assert_close(*gradients)


def test_attention_is_the_package_on_plain_scores():
    torch.manual_seed(0)
    q, k = torch.randn(2, 3, 5, 11, dtype=torch.float64), torch.randn(2, 3, 7, 11, dtype=torch.float64)
    scores = q @ k.transpose(-1, -2) / 11**0.5
    torch.testing.assert_close(Entmax15().weights(q, k, Mask()), entmax.entmax15(scores, dim=-1))


def test_a_masked_key_is_as_if_it_were_not_there():
    torch.manual_seed(0)
    q, k = torch.randn(1, 1, 5, 11), torch.randn(1, 1, 7, 11)
    real = torch.tensor([[True, True, False, True, False, True, True]])
    found = Entmax15().weights(q, k, Mask(keys=real))
    torch.testing.assert_close(found[..., real[0]], Entmax15().weights(q, k[:, :, real[0]], Mask()))


@pytest.mark.parametrize("size", [1e3, 1e9, 1e30])
def test_large_scores_do_not_overflow(size):
    torch.manual_seed(0)
    q, k = torch.ones(1, 1, 5, 1), size * torch.randn(1, 1, 300, 1)
    w = Entmax15().weights(q, k, Mask())
    assert torch.equal(w.argmax(dim=-1), k.squeeze(-1).argmax(dim=-1, keepdim=True).expand(1, 1, 5))
    torch.testing.assert_close(w.sum(dim=-1), torch.ones(1, 1, 5))
