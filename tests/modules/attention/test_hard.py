"""Hard attention: one key, and the gradient of the softmax."""

import pytest
import torch

from neural.modules.attention.hard import Hard
from neural.modules.mask import Mask

B, H, T, D = 2, 3, 7, 5


def three(dtype: torch.dtype = torch.float64) -> list[torch.Tensor]:
    torch.manual_seed(0)
    return [torch.randn(B, H, T, D, dtype=dtype, requires_grad=True) for _ in range(3)]


def test_the_best_key_gets_everything():
    q, k, v = three()
    best = (q @ k.transpose(-1, -2)).argmax(dim=-1)
    assert torch.equal(Hard().weights(q, k, Mask()), torch.nn.functional.one_hot(best, T).double())
    torch.testing.assert_close(Hard().mix(q, k, v, Mask()), v.gather(-2, best.unsqueeze(-1).expand(-1, -1, -1, D)))


@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
def test_its_gradient_is_that_of_the_softmax(temperature):
    q, k, v = three()
    towards = torch.randn(B, H, T, T, dtype=torch.float64)
    soft = (q @ k.transpose(-1, -2) / D**0.5 / temperature).softmax(dim=-1)
    wanted = torch.autograd.grad(soft, [q, k], towards, retain_graph=True)
    found = torch.autograd.grad(Hard(temperature=temperature).weights(q, k, Mask()), [q, k], towards)
    torch.testing.assert_close(found, wanted)

    # through the values: the weights' gradient is output-gradient · valueᵀ, the values' own by the one-hot weights
    given = torch.randn_like(v)
    wanted = torch.autograd.grad(soft, [q, k], given @ v.transpose(-1, -2))
    to_q, to_k, to_v = torch.autograd.grad(Hard(temperature=temperature).mix(q, k, v, Mask()), [q, k, v], given)
    torch.testing.assert_close((to_q, to_k), wanted)
    torch.testing.assert_close(to_v, Hard().weights(q, k, Mask()).transpose(-1, -2) @ given)


def test_the_first_of_equals():
    q = k = torch.ones(1, 1, 4, 2)
    assert Hard().weights(q, k, Mask()).argmax(dim=-1).flatten().tolist() == [0, 0, 0, 0]


def test_sampled_keys_come_as_often_as_the_softmax_says_and_only_while_learning():
    torch.manual_seed(0)
    q, k = torch.ones(1, 1, 1, 1).expand(1, 1, 20_000, 1), torch.tensor([0.0, 1.0, 2.0, 5.0]).view(1, 1, 4, 1)
    mask = Mask(keys=torch.tensor([[True, True, True, False]]))
    sampled = Hard(sampled=True, temperature=2.0)
    drawn = sampled.weights(q, k, mask)
    assert (drawn.sum(dim=-1) == 1).all()
    wanted = torch.tensor([0.0, 0.5, 1.0]).softmax(dim=0)
    torch.testing.assert_close(drawn[0, 0, :, :3].mean(dim=0), wanted, rtol=0, atol=0.02)
    assert (drawn[..., 3] == 0).all()
    with torch.no_grad():
        assert torch.equal(sampled.weights(q, k, mask), Hard().weights(q, k, mask))


def test_the_same_seed_draws_the_same():
    q, k, v = three()
    seeds = []
    for _ in range(2):
        torch.manual_seed(5)
        seeds.append(Hard(sampled=True).mix(q, k, v, Mask()))
    assert torch.equal(*seeds)


def test_a_bad_temperature_is_named():
    with pytest.raises(ValueError, match="`temperature`"):
        Hard(temperature=0.0)
