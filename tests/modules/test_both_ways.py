"""Reading in both directions: the same as packing, without its cost."""

import pytest
import torch

from neural.modules.both_ways import BothWays, turning


@pytest.mark.parametrize("layers", [1, 3])
def test_turning_around_equals_packing_in_values_and_gradients(layers):
    torch.manual_seed(0)
    lstm, x, lengths = BothWays(5, 4, layers), torch.randn(4, 11, 5), torch.tensor([3, 11, 1, 7])
    mask = torch.arange(11) < lengths.unsqueeze(-1)
    towards = torch.randn(4, 11, 8)
    found = []
    for read in (lstm.turned, lstm.packed):
        lstm.zero_grad()
        out = read(x, lengths).masked_fill(~mask.unsqueeze(-1), 0)
        (out * towards).sum().backward()
        found.append([out, *(one.grad.clone() for one in lstm.parameters())])
    for mine, its in zip(*found, strict=True):
        torch.testing.assert_close(mine, its)


def test_rows_are_turned_within_their_own_length():
    assert turning(torch.tensor([3, 1]), 4).squeeze(-1).tolist() == [[2, 1, 0, 3], [0, 1, 2, 3]]


def test_a_batch_without_padding_is_read_by_torch_alone():
    torch.manual_seed(0)
    lstm, x = BothWays(5, 4, 2), torch.randn(2, 6, 5)
    wanted = lstm.cell(x)[0]
    torch.testing.assert_close(lstm(x), wanted)
    torch.testing.assert_close(lstm(x, torch.ones(2, 6, dtype=torch.bool)), wanted)
    torch.testing.assert_close(lstm.turned(x, torch.tensor([6, 6])), wanted)


def test_padding_is_zero_whatever_stands_there():
    lstm = BothWays(5, 4)
    x, mask = torch.full((1, 4, 5), 1e9), torch.tensor([[True, True, False, False]])
    assert (lstm(x, mask)[0, 2:] == 0).all()


def test_dropout_works_between_layers_while_training_alone():
    torch.manual_seed(0)
    lstm, x, lengths = BothWays(5, 4, 2, dropout=0.5), torch.randn(2, 6, 5), torch.tensor([6, 4])
    mask = torch.arange(6) < lengths.unsqueeze(-1)
    assert not torch.equal(lstm.train()(x, mask), lstm(x, mask))
    assert torch.equal(lstm.eval()(x, mask), lstm(x, mask))
    assert BothWays(5, 4, 1, dropout=0.5).cell.dropout == 0
