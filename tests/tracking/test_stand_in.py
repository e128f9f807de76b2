"""Attention computed another way for a while: right while it lasts, and gone afterwards."""

import pytest
import torch

import neural
from neural.modules.attention import registry as attention
from neural.modules.heads import Heads
from neural.tracking.stand_in import without_head, written_out

B, T, E, H = 2, 7, 12, 3


def network(mechanism="self"):
    torch.manual_seed(0)
    block = f"MultiHeadAttention(num_heads={H}, attention={attention.get(mechanism).tiny()!r})"
    return neural.parse(f"network A {{\n  input: (None, {E})\n  layers:\n    {block}\n}}").build().eval()


def numbers():
    return torch.randn(B, T, E, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("name", attention.names())
def test_written_out_gives_the_same_output(name):
    model = network(name)
    heads = next(one for one in model.modules() if isinstance(one, Heads))
    own = heads.mechanism
    with torch.no_grad():
        fused = model(numbers())
        with written_out(model):
            assert heads.mechanism is not own
            torch.testing.assert_close(model(numbers()), fused)
    assert heads.mechanism is own


def test_a_missing_head_is_a_head_whose_output_weights_are_zero():
    model = network()
    path, heads = next((path, one) for path, one in model.named_modules() if isinstance(one, Heads))
    with torch.no_grad():
        whole = model(numbers())
        with without_head(model, path, 1):
            missing = model(numbers())
        assert torch.equal(model(numbers()), whole)
        width = heads.head_width
        heads.output.weight[:, width : 2 * width] = 0
        torch.testing.assert_close(model(numbers()), missing)
    assert not torch.allclose(whole, missing)


def test_what_is_no_attention_of_ours_is_refused():
    model = torch.nn.Sequential(torch.nn.ReLU())
    with pytest.raises(TypeError, match="no attention of ours"), without_head(model, "0", 0):
        pass
