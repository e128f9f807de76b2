"""Hard attention: one key per query, with the gradient of the softmax."""

import pytest
import torch

from neural.nn.attention.hard import Hard
from neural.nn.mask import Mask

B, H, T, D = 2, 3, 7, 5


def random_qkv(dtype: torch.dtype = torch.float64) -> list[torch.Tensor]:
    torch.manual_seed(0)
    return [torch.randn(B, H, T, D, dtype=dtype, requires_grad=True) for _ in range(3)]


def test_the_best_key_has_weight_one():
    q, k, v = random_qkv()
    best = (q @ k.transpose(-1, -2)).argmax(dim=-1)
    assert torch.equal(Hard().weights(q, k, Mask()), torch.nn.functional.one_hot(best, T).double())
    torch.testing.assert_close(
        Hard().attend(q, k, v, Mask()), v.gather(-2, best.unsqueeze(-1).expand(-1, -1, -1, D))
    )


@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
def test_the_gradient_is_that_of_the_softmax(temperature):
    q, k, v = random_qkv()
    grad_out = torch.randn(B, H, T, T, dtype=torch.float64)
    soft = (q @ k.transpose(-1, -2) / D**0.5 / temperature).softmax(dim=-1)
    expected = torch.autograd.grad(soft, [q, k], grad_out, retain_graph=True)
    actual = torch.autograd.grad(
        Hard(temperature=temperature).weights(q, k, Mask()), [q, k], grad_out
    )
    torch.testing.assert_close(actual, expected)

    # Through the values: the gradient of the weights is grad_out · valueᵀ, that of the values comes
    # from the one-hot weights.
    grad_output = torch.randn_like(v)
    expected = torch.autograd.grad(soft, [q, k], grad_output @ v.transpose(-1, -2))
    grad_q, grad_k, grad_v = torch.autograd.grad(
        Hard(temperature=temperature).attend(q, k, v, Mask()), [q, k, v], grad_output
    )
    torch.testing.assert_close((grad_q, grad_k), expected)
    torch.testing.assert_close(grad_v, Hard().weights(q, k, Mask()).transpose(-1, -2) @ grad_output)


def test_the_first_of_equal_keys_is_chosen():
    q = k = torch.ones(1, 1, 4, 2)
    assert Hard().weights(q, k, Mask()).argmax(dim=-1).flatten().tolist() == [0, 0, 0, 0]


def test_keys_are_sampled_from_the_softmax_only_with_gradients():
    torch.manual_seed(0)
    q, k = (
        torch.ones(1, 1, 1, 1).expand(1, 1, 20_000, 1),
        torch.tensor([0.0, 1.0, 2.0, 5.0]).view(1, 1, 4, 1),
    )
    mask = Mask(keys=torch.tensor([[True, True, True, False]]))
    sampled = Hard(sampled=True, temperature=2.0)
    drawn = sampled.weights(q, k, mask)
    assert (drawn.sum(dim=-1) == 1).all()
    expected = torch.tensor([0.0, 0.5, 1.0]).softmax(dim=0)
    torch.testing.assert_close(drawn[0, 0, :, :3].mean(dim=0), expected, rtol=0, atol=0.02)
    assert (drawn[..., 3] == 0).all()
    with torch.no_grad():
        assert torch.equal(sampled.weights(q, k, mask), Hard().weights(q, k, mask))


def test_the_same_seed_draws_the_same():
    q, k, v = random_qkv()
    outputs = []
    for _ in range(2):
        torch.manual_seed(5)
        outputs.append(Hard(sampled=True).attend(q, k, v, Mask()))
    assert torch.equal(*outputs)


def test_a_bad_temperature_is_named():
    with pytest.raises(ValueError, match="`temperature`"):
        Hard(temperature=0.0)
