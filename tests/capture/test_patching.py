"""Patched mechanisms: correct inside the block, and restored after it."""

import pytest
import torch

import neural
from neural.capture.patching import use_dense_weights
from neural.nn.attention import registry as attention
from neural.nn.multi_head_attention import MultiHeadAttentionModule

B, T, E, H = 2, 7, 12, 3


def build_network(mechanism="self"):
    torch.manual_seed(0)
    block = f"MultiHeadAttention(num_heads={H}, attention={attention.get(mechanism).example()!r})"
    return (
        neural.parse(f"network A {{\n  input: (None, {E})\n  layers:\n    {block}\n}}")
        .build()
        .eval()
    )


def random_input():
    return torch.randn(B, T, E, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("name", attention.names())
def test_dense_weights_give_the_same_output(name):
    model = build_network(name)
    modules = model.modules()
    module = next(item for item in modules if isinstance(item, MultiHeadAttentionModule))
    original = module.mechanism
    with torch.no_grad():
        fused = model(random_input())
        with use_dense_weights(model):
            assert module.mechanism is not original
            torch.testing.assert_close(model(random_input()), fused)
    assert module.mechanism is original
