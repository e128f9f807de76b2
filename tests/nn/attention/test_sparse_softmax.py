"""Sparsemax and 1.5-entmax: plain torch equals the entmax package; masks and large scores."""

import entmax
import pytest
import torch

from neural.nn.attention.entmax15 import Entmax15, entmax15
from neural.nn.attention.sparsemax import Sparsemax, sparsemax
from neural.nn.kernel_dispatch import no_kernels
from neural.nn.mask import Mask

both = pytest.mark.parametrize(
    ("mechanism", "ours", "theirs"),
    [(Sparsemax(), sparsemax, entmax.sparsemax), (Entmax15(), entmax15, entmax.entmax15)],
    ids=["sparsemax", "entmax15"],
)


@both
@pytest.mark.parametrize("keys", [1, 2, 7, 300])
@pytest.mark.parametrize("scale", [0.01, 1.0, 30.0])
def test_plain_torch_equals_the_package_in_values_and_gradients(
    mechanism, ours, theirs, keys, scale
):
    torch.manual_seed(0)
    scores = (scale * torch.randn(11, keys, dtype=torch.float64)).requires_grad_()
    grad_out = torch.randn_like(scores)
    with no_kernels():
        actual = ours(scores)
    expected = theirs(scores, dim=-1)
    torch.testing.assert_close(actual, expected)
    torch.testing.assert_close(ours(scores), expected)
    gradients = [torch.autograd.grad(out, scores, grad_out)[0] for out in (actual, expected)]
    torch.testing.assert_close(*gradients)


@both
def test_attention_weights_equal_the_package_on_scores(mechanism, ours, theirs):
    torch.manual_seed(0)
    q, k = (
        torch.randn(2, 3, 5, 11, dtype=torch.float64),
        torch.randn(2, 3, 7, 11, dtype=torch.float64),
    )
    scores = q @ k.transpose(-1, -2) / 11**0.5
    torch.testing.assert_close(mechanism.weights(q, k, Mask()), theirs(scores, dim=-1))


@both
def test_masked_keys_have_no_effect(mechanism, ours, theirs):
    torch.manual_seed(0)
    q, k = torch.randn(1, 1, 5, 11), torch.randn(1, 1, 7, 11)
    key_mask = torch.tensor([[True, True, False, True, False, True, True]])
    actual = mechanism.weights(q, k, Mask(keys=key_mask))
    torch.testing.assert_close(
        actual[..., key_mask[0]], mechanism.weights(q, k[:, :, key_mask[0]], Mask())
    )


@both
@pytest.mark.parametrize("size", [1e3, 1e9, 1e30])
def test_large_scores_do_not_overflow(mechanism, ours, theirs, size):
    torch.manual_seed(0)
    q, k = torch.ones(1, 1, 5, 1), size * torch.randn(1, 1, 300, 1)
    w = mechanism.weights(q, k, Mask())
    assert torch.equal(w.argmax(dim=-1), k.squeeze(-1).argmax(dim=-1, keepdim=True).expand(1, 1, 5))
    torch.testing.assert_close(w.sum(dim=-1), torch.ones(1, 1, 5))
