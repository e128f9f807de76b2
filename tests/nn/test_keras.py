"""Our layers give the same values as Keras' with the same weights."""

import os

os.environ.setdefault("KERAS_BACKEND", "torch")

import keras
import pytest
import torch

from neural.nn.build import build
from neural.nn.multi_head_attention import MultiHeadAttentionModule
from tests.programs import load_network

B, T, E, H = 2, 7, 12, 3


def build_keras_attention(
    ours: MultiHeadAttentionModule, head_width: int
) -> keras.layers.MultiHeadAttention:
    """Keras' attention with our weights; its kernels are (width, heads, head width)."""
    theirs = keras.layers.MultiHeadAttention(num_heads=H, key_dim=head_width, dtype="float64")
    theirs.build((B, T, E), (B, T, E))
    kernels = []
    for linear in (ours.query, ours.key, ours.value):
        kernels += [linear.weight.T.reshape(E, H, head_width), linear.bias.reshape(H, head_width)]
    kernels += [ours.output.weight.T.reshape(H, head_width, E), ours.output.bias]
    theirs.set_weights([kernel.detach().numpy() for kernel in kernels])
    return theirs


@pytest.mark.parametrize("key_dim", [5, 4, 11])
def test_multi_head_attention_equals_that_of_keras(key_dim):
    torch.manual_seed(0)
    line = f"MultiHeadAttention(num_heads={H}, key_dim={key_dim})"
    net = (
        build(load_network(f"network Trial {{\n input: ({T}, {E})\n layers:\n{line}\n}}"))
        .double()
        .eval()
    )
    theirs = build_keras_attention(net.multi_head_attention, key_dim)
    x = torch.randn(B, T, E, dtype=torch.float64)
    assert sum(param.numel() for param in net.parameters()) == theirs.count_params()
    torch.testing.assert_close(net(x), theirs(x, x), rtol=1e-6, atol=1e-7)
    mask = torch.arange(T) < torch.tensor([[4], [T]])
    torch.testing.assert_close(
        net(x, mask), theirs(x, x, attention_mask=mask[:, None, :]), rtol=1e-6, atol=1e-7
    )


def test_convolution_and_pooling_equal_those_of_keras():
    torch.manual_seed(0)
    x = torch.randn(B, 7, 11, 3)
    for padding in ("valid", "same"):
        lines = (
            f'Conv2D(5, (3, 2), strides=(2, 1), padding="{padding}", activation="relu")\n'
            f'MaxPooling2D((2, 3), padding="{padding}")'
        )
        net = build(load_network(f"network Trial {{\n input: (7, 11, 3)\n layers:\n{lines}\n}}"))
        weights = net.conv2d.convolution
        conv = keras.layers.Conv2D(5, (3, 2), strides=(2, 1), padding=padding, activation="relu")
        conv.build(x.shape)
        conv.set_weights(
            [weights.weight.detach().permute(2, 3, 1, 0).numpy(), weights.bias.detach().numpy()]
        )
        theirs = keras.layers.MaxPooling2D((2, 3), padding=padding)(conv(x))
        torch.testing.assert_close(net(x), theirs, rtol=1e-5, atol=1e-6)
