"""Groups of query heads that share keys and values."""

import torch

from neural.modules.attention.self import Self
from neural.modules.heads import Heads
from tests.programs import network


def test_shared_keys_and_values_equal_copied_ones():
    torch.manual_seed(0)
    shared = Heads(12, 6, 5, Self(), key_value_heads=2)
    copied = Heads(12, 6, 5, Self())
    state = shared.state_dict()
    for name in ("key", "value"):
        weight, bias = state[f"{name}.weight"].unflatten(0, (2, 5)), state[f"{name}.bias"].unflatten(0, (2, 5))
        state[f"{name}.weight"] = weight.repeat_interleave(3, dim=0).flatten(0, 1)
        state[f"{name}.bias"] = bias.repeat_interleave(3, dim=0).flatten(0, 1)
    copied.load_state_dict(state)
    x = torch.randn(2, 7, 12)
    torch.testing.assert_close(shared(x), copied(x))


def test_groups_save_parameters_and_the_count_is_exact():
    from neural.modules.build import build

    block = "TransformerDecoder(num_heads=6, d_model=12, num_kv_heads=2)"
    text = f"network A {{\n  input: (7, 12)\n  layers:\n    {block}\n}}"
    grouped = network(text)
    assert sum(one.numel() for one in build(grouped).parameters()) == grouped.cost.parameters
    whole = network(text.replace(", num_kv_heads=2", ""))
    assert whole.cost.parameters - grouped.cost.parameters == 2 * (12 * 8 + 8)
