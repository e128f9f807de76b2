"""The bidirectional LSTM on dense rows equals packed sequences."""

import pytest
import torch

from neural.nn.bilstm import BiLSTM, reversal_indices


@pytest.mark.parametrize("layers", [1, 3])
def test_reversed_rows_equal_packing_in_values_and_gradients(layers):
    torch.manual_seed(0)
    lstm, x, lengths = BiLSTM(5, 4, layers), torch.randn(4, 11, 5), torch.tensor([3, 11, 1, 7])
    mask = torch.arange(11) < lengths.unsqueeze(-1)
    grad_out = torch.randn(4, 11, 8)
    results = []
    for run in (lstm.run_reversed, lstm.run_packed):
        lstm.zero_grad()
        out = run(x, lengths).masked_fill(~mask.unsqueeze(-1), 0)
        (out * grad_out).sum().backward()
        results.append([out, *(param.grad.clone() for param in lstm.parameters())])
    for by_reversal, by_packing in zip(*results, strict=True):
        torch.testing.assert_close(by_reversal, by_packing)


def test_rows_are_reversed_within_their_length():
    assert reversal_indices(torch.tensor([3, 1]), 4).squeeze(-1).tolist() == [
        [2, 1, 0, 3],
        [0, 1, 2, 3],
    ]


def test_a_batch_without_padding_equals_torchs_lstm():
    torch.manual_seed(0)
    lstm, x = BiLSTM(5, 4, 2), torch.randn(2, 6, 5)
    expected = lstm.cell(x)[0]
    torch.testing.assert_close(lstm(x), expected)
    torch.testing.assert_close(lstm(x, torch.ones(2, 6, dtype=torch.bool)), expected)
    torch.testing.assert_close(lstm.run_reversed(x, torch.tensor([6, 6])), expected)


def test_outputs_at_padding_are_zero():
    lstm = BiLSTM(5, 4)
    x, mask = torch.full((1, 4, 5), 1e9), torch.tensor([[True, True, False, False]])
    assert (lstm(x, mask)[0, 2:] == 0).all()


def test_dropout_between_layers_is_active_in_training_only():
    torch.manual_seed(0)
    lstm, x, lengths = BiLSTM(5, 4, 2, dropout=0.5), torch.randn(2, 6, 5), torch.tensor([6, 4])
    mask = torch.arange(6) < lengths.unsqueeze(-1)
    assert not torch.equal(lstm.train()(x, mask), lstm(x, mask))
    assert torch.equal(lstm.eval()(x, mask), lstm(x, mask))
    assert BiLSTM(5, 4, 1, dropout=0.5).cell.dropout == 0
