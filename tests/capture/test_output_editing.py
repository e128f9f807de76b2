"""Head outputs are found in every layout in which a model may write its product with values."""

import pytest
import torch
from torch import nn

import neural

zero = neural.interventions.zero
B, H, Q, D = 2, 3, 5, 4


class Handmade(nn.Module):
    """Attention by a softmax; `layout` is how the weights are multiplied with the values."""

    def __init__(self, layout):
        super().__init__()
        torch.manual_seed(0)
        self.query, self.key, self.value, self.out = (nn.Linear(12, 12) for _ in range(4))
        self.layout = layout

    def forward(self, x):
        q, k, v = (
            part(x).unflatten(-1, (H, D)).transpose(1, 2)
            for part in (self.query, self.key, self.value)
        )
        weights = (q @ k.mT / 2).softmax(-1)
        if self.layout == "matmul":
            z = weights @ v
        elif self.layout == "transposed":
            z = (v.mT @ weights.mT).mT
        elif self.layout == "einsum":
            z = torch.einsum("bhqk,bhkd->bhqd", weights, v)
        elif self.layout == "einsum, other order":
            z = torch.einsum("bhqk,bhkd->bqhd", weights, v).transpose(1, 2)
        else:
            z = torch.einsum("bkhd,bhqk->bqhd", v.transpose(1, 2), weights).transpose(1, 2)
        return self.out(z.transpose(1, 2).flatten(2))


@pytest.mark.parametrize(
    "layout", ["matmul", "transposed", "einsum", "einsum, other order", "values first"]
)
def test_the_product_with_values_is_edited_in_its_own_layout(layout):
    model = Handmade(layout)
    x = torch.randn(B, Q, 12)
    with torch.no_grad():
        before = model(x)
        outputs = neural.record_head_outputs(model, x, keep_weights=True, softmax=True)
        with neural.intervene(model, zero("L0 h1"), softmax=True):
            changed = model(x)
        pattern = neural.interventions.replace_pattern("L0 h1", outputs[0].weights[:, 1:2])
        with neural.intervene(model, pattern, softmax=True):
            assert (model(x) - before).abs().max() < 1e-6
        model.out.weight[:, D : 2 * D] = 0
        assert (model(x) - changed).abs().max() < 1e-6
    assert outputs[0].output.shape == (B, H, Q, D)
    assert (outputs[0].weights @ outputs[0].values - outputs[0].output).abs().max() < 1e-6


@pytest.mark.parametrize("options", [{}, {"add_bias_kv": True}, {"add_zero_attn": True}])
def test_added_keys_of_torch_attention_keep_their_values(options):
    torch.manual_seed(0)
    attention = nn.MultiheadAttention(12, H, batch_first=True, **options).eval()
    x = torch.randn(B, Q, 12)
    with torch.no_grad():
        before = attention(x, x, x)[0]
        outputs = neural.record_head_outputs(attention, (x, x, x))
        with neural.intervene(attention, neural.interventions.patch("all", outputs)):
            assert torch.equal(attention(x, x, x)[0], before)
    assert outputs[0].output.shape == (B, H, Q, D)
