"""Patched mechanisms: correct inside the block, and restored after it."""

import pytest
import torch

import neural
from neural.capture.patching import ablate_head, use_dense_weights
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


def test_an_ablated_head_is_a_head_whose_output_weights_are_zero():
    model = build_network()
    path, module = next(
        (path, module)
        for path, module in model.named_modules()
        if isinstance(module, MultiHeadAttentionModule)
    )
    with torch.no_grad():
        complete = model(random_input())
        with ablate_head(model, path, 1):
            ablated = model(random_input())
        assert torch.equal(model(random_input()), complete)
        width = module.head_width
        module.output.weight[:, width : 2 * width] = 0
        torch.testing.assert_close(model(random_input()), ablated)
    assert not torch.allclose(complete, ablated)


def test_a_module_that_is_not_attention_of_neural_is_refused():
    model = torch.nn.Sequential(torch.nn.ReLU())
    with (
        pytest.raises(TypeError, match="not an attention module of `neural`"),
        ablate_head(model, "0", 0),
    ):
        pass
