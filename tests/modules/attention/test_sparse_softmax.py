"""Sparsemax and 1.5-entmax: what the package gives, what plain torch gives, and what masks and large scores do."""

import entmax
import pytest
import torch

from neural.modules.attention.entmax15 import Entmax15, entmax15
from neural.modules.attention.sparsemax import Sparsemax, sparsemax
from neural.modules.compiled import plain_torch
from neural.modules.mask import Mask

both = pytest.mark.parametrize(
    ("mechanism", "ours", "theirs"),
    [(Sparsemax(), sparsemax, entmax.sparsemax), (Entmax15(), entmax15, entmax.entmax15)],
    ids=["sparsemax", "entmax15"],
)


@both
@pytest.mark.parametrize("keys", [1, 2, 7, 300])
@pytest.mark.parametrize("spread", [0.01, 1.0, 30.0])
def test_plain_torch_is_the_package_in_values_and_gradients(mechanism, ours, theirs, keys, spread):
    torch.manual_seed(0)
    scores = (spread * torch.randn(11, keys, dtype=torch.float64)).requires_grad_()
    towards = torch.randn_like(scores)
    with plain_torch():
        found = ours(scores)
    wanted = theirs(scores, dim=-1)
    torch.testing.assert_close(found, wanted)
    torch.testing.assert_close(ours(scores), wanted)
    gradients = [torch.autograd.grad(one, scores, towards)[0] for one in (found, wanted)]
    torch.testing.assert_close(*gradients)


@both
def test_attention_is_the_package_on_plain_scores(mechanism, ours, theirs):
    torch.manual_seed(0)
    q, k = torch.randn(2, 3, 5, 11, dtype=torch.float64), torch.randn(2, 3, 7, 11, dtype=torch.float64)
    scores = q @ k.transpose(-1, -2) / 11**0.5
    torch.testing.assert_close(mechanism.weights(q, k, Mask()), theirs(scores, dim=-1))


@both
def test_a_masked_key_is_as_if_it_were_not_there(mechanism, ours, theirs):
    torch.manual_seed(0)
    q, k = torch.randn(1, 1, 5, 11), torch.randn(1, 1, 7, 11)
    real = torch.tensor([[True, True, False, True, False, True, True]])
    found = mechanism.weights(q, k, Mask(keys=real))
    torch.testing.assert_close(found[..., real[0]], mechanism.weights(q, k[:, :, real[0]], Mask()))


@both
@pytest.mark.parametrize("size", [1e3, 1e9, 1e30])
def test_large_scores_do_not_overflow(mechanism, ours, theirs, size):
    torch.manual_seed(0)
    q, k = torch.ones(1, 1, 5, 1), size * torch.randn(1, 1, 300, 1)
    w = mechanism.weights(q, k, Mask())
    assert torch.equal(w.argmax(dim=-1), k.squeeze(-1).argmax(dim=-1, keepdim=True).expand(1, 1, 5))
    torch.testing.assert_close(w.sum(dim=-1), torch.ones(1, 1, 5))
