"""Uniform attention: the mean over visible keys."""

import torch

from neural.nn.attention.uniform import Uniform
from neural.nn.mask import Mask

B, H, T, D = 2, 3, 7, 5


def random_qkv() -> list[torch.Tensor]:
    torch.manual_seed(0)
    return [torch.randn(B, H, T, D, dtype=torch.float64) for _ in range(3)]


def test_it_is_the_mean_for_any_queries_keys_and_biases():
    q, k, v = random_qkv()
    output = Uniform().attend(
        q, k, v, Mask(bias=torch.randn(H, T, T), key_bias=torch.randn(B, H, T))
    )
    torch.testing.assert_close(output, v.mean(dim=-2, keepdim=True).expand_as(v))


def test_causal_attention_is_the_running_mean():
    q, k, v = random_qkv()
    output = Uniform().attend(q, k, v, Mask(causal=True))
    for t in range(T):
        torch.testing.assert_close(output[:, :, t], v[:, :, : t + 1].mean(dim=-2))


def test_padding_does_not_count():
    q, k, v = random_qkv()
    key_mask = torch.tensor([[1.0, 1, 1, 0, 0, 0, 0], [0.0, 0, 0, 0, 0, 0, 0]])
    output = Uniform().attend(q, k, v, Mask(keys=key_mask))
    torch.testing.assert_close(output[0], v[0, :, :3].mean(dim=-2, keepdim=True).expand(H, T, D))
    assert (output[1] == 0).all()


def test_unused_inputs_have_zero_gradients_not_none():
    q, k, v = (tensor.requires_grad_() for tensor in random_qkv())
    bias = torch.randn(H, T, T, requires_grad=True)
    for mask in (Mask(bias=bias), Mask(bias=bias, causal=True), Mask(bias=bias, reach=2)):
        output = Uniform().attend(q, k, v, mask)
        assert all((grad == 0).all() for grad in torch.autograd.grad(output.sum(), [q, k, bias]))


def test_known_weights():
    q, k, _ = (tensor[:1, :1, :3] for tensor in random_qkv())
    w = Uniform().weights(q, k, Mask(causal=True))[0, 0]
    assert w.tolist() == [[1, 0, 0], [0.5, 0.5, 0], [1 / 3, 1 / 3, 1 / 3]]


def test_sums_are_exact_in_16_bits():
    v = torch.ones(1, 1, 3000, 1, dtype=torch.bfloat16)  # summed in 16 bits, 256 + 1 is 256
    assert (Uniform().attend(v, v, v, Mask(causal=True)) == 1).all()
    assert (Uniform().attend(v, v, v, Mask()) == 1).all()
