"""Predicted activations of attention match what torch saves for the backward pass."""

import pytest
import torch

from neural.nn.attention import registry
from neural.nn.layers.multi_head_attention import MultiHeadAttention
from neural.nn.layers.transformer_decoder import TransformerDecoder
from neural.testing.fixtures import count_saved_activations

WIDTH, HEADS = 64, 4


def predicted_over_saved(layer, time):
    torch.manual_seed(0)
    module = layer.build((time, WIDTH)).train()
    saved = count_saved_activations(module, torch.randn(2, time, WIDTH, requires_grad=True))
    return layer.cost((time, WIDTH)).activations / saved


@pytest.mark.parametrize("time", [16, 64])
@pytest.mark.parametrize("name", registry.names())
def test_attention_saves_the_predicted_activations(name, time):
    layer = MultiHeadAttention(num_heads=HEADS, key_dim=WIDTH // HEADS, attention=name)
    # The layer saves a second copy of linear attention's output, in the layout of its projection.
    assert (0.8 if name == "linear" else 0.85) <= predicted_over_saved(layer, time) <= 1.15


# Causal linear attention saves about twice the prediction, which ignores causality.
@pytest.mark.parametrize("name", sorted({*registry.names()} - {"linear"}))
def test_a_causal_block_saves_the_predicted_activations(name):
    layer = TransformerDecoder(
        num_heads=HEADS, d_model=WIDTH, dff=WIDTH, dropout_rate=0.0, attention=name
    )
    assert 0.85 <= predicted_over_saved(layer, 64) <= 1.15
