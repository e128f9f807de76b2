"""Groups of query heads that share keys and values."""

import torch

from neural.nn.attention.self import Self
from neural.nn.multi_head_attention import MultiHeadAttentionModule
from tests.programs import load_network


def test_shared_keys_and_values_equal_copied_ones():
    torch.manual_seed(0)
    shared = MultiHeadAttentionModule(12, 6, 5, Self(), num_kv_heads=2)
    copied = MultiHeadAttentionModule(12, 6, 5, Self())
    state = shared.state_dict()
    for name in ("key", "value"):
        weight, bias = (
            state[f"{name}.weight"].unflatten(0, (2, 5)),
            state[f"{name}.bias"].unflatten(0, (2, 5)),
        )
        state[f"{name}.weight"] = weight.repeat_interleave(3, dim=0).flatten(0, 1)
        state[f"{name}.bias"] = bias.repeat_interleave(3, dim=0).flatten(0, 1)
    copied.load_state_dict(state)
    x = torch.randn(2, 7, 12)
    torch.testing.assert_close(shared(x), copied(x))


def test_groups_save_parameters_and_the_count_is_exact():
    from neural.nn.build import build

    block = "TransformerDecoder(num_heads=6, d_model=12, num_kv_heads=2)"
    text = f"network A {{\n  input: (7, 12)\n  layers:\n    {block}\n}}"
    grouped = load_network(text)
    assert sum(param.numel() for param in build(grouped).parameters()) == grouped.cost.parameters
    ungrouped = load_network(text.replace(", num_kv_heads=2", ""))
    assert ungrouped.cost.parameters - grouped.cost.parameters == 2 * (12 * 8 + 8)
