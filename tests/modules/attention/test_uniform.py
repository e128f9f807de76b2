"""Uniform attention: a mean."""

import torch

from neural.modules.attention.uniform import Uniform
from neural.modules.mask import Mask

B, H, T, D = 2, 3, 7, 5


def three() -> list[torch.Tensor]:
    torch.manual_seed(0)
    return [torch.randn(B, H, T, D, dtype=torch.float64) for _ in range(3)]


def test_it_is_the_mean_whatever_is_asked():
    q, k, v = three()
    mixed = Uniform().mix(q, k, v, Mask(bias=torch.randn(H, T, T), key_bias=torch.randn(B, H, T)))
    torch.testing.assert_close(mixed, v.mean(dim=-2, keepdim=True).expand_as(v))


def test_causally_it_is_the_running_mean():
    q, k, v = three()
    mixed = Uniform().mix(q, k, v, Mask(causal=True))
    for t in range(T):
        torch.testing.assert_close(mixed[:, :, t], v[:, :, : t + 1].mean(dim=-2))


def test_padding_does_not_count():
    q, k, v = three()
    real = torch.tensor([[1.0, 1, 1, 0, 0, 0, 0], [0.0, 0, 0, 0, 0, 0, 0]])
    mixed = Uniform().mix(q, k, v, Mask(keys=real))
    torch.testing.assert_close(mixed[0], v[0, :, :3].mean(dim=-2, keepdim=True).expand(H, T, D))
    assert (mixed[1] == 0).all()


def test_what_is_not_used_gets_a_gradient_of_zero_not_none():
    q, k, v = (one.requires_grad_() for one in three())
    bias = torch.randn(H, T, T, requires_grad=True)
    for mask in (Mask(bias=bias), Mask(bias=bias, causal=True), Mask(bias=bias, reach=2)):
        mixed = Uniform().mix(q, k, v, mask)
        assert all((one == 0).all() for one in torch.autograd.grad(mixed.sum(), [q, k, bias]))


def test_weights_by_hand():
    q, k, _ = (one[:1, :1, :3] for one in three())
    w = Uniform().weights(q, k, Mask(causal=True))[0, 0]
    assert w.tolist() == [[1, 0, 0], [0.5, 0.5, 0], [1 / 3, 1 / 3, 1 / 3]]


def test_sixteen_bits_do_not_lose_the_count():
    v = torch.ones(1, 1, 3000, 1, dtype=torch.bfloat16)   # summed in 16 bits, 256 + 1 is 256
    assert (Uniform().mix(v, v, v, Mask(causal=True)) == 1).all()
    assert (Uniform().mix(v, v, v, Mask()) == 1).all()
