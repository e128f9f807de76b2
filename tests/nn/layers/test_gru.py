"""The GRU equals torch's cell, step by step."""

import torch
from torch import nn

from neural.nn.layers.gru import GRU


def test_a_gru_equals_torchs_cell():
    torch.manual_seed(0)
    ours = GRU(units=5).build((7, 3))
    cell = nn.GRUCell(3, 5)
    cell.load_state_dict(
        {name.removesuffix("_l0"): value for name, value in ours.cell.state_dict().items()}
    )
    x, state = torch.randn(2, 7, 3), torch.zeros(2, 5)
    for step in range(7):
        state = cell(x[:, step], state)
        torch.testing.assert_close(ours(x)[:, step], state)


def test_the_last_state_is_returned_without_return_sequences():
    torch.manual_seed(0)
    module = GRU(units=5, return_sequences=False).build((7, 3))
    x = torch.randn(2, 7, 3)
    torch.testing.assert_close(module(x), module.cell(x)[0][:, -1])
