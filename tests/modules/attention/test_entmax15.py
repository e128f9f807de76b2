"""1.5-entmax; what it shares with the other one is in test_sparse_softmax.py."""

import torch

from neural.modules.attention.entmax15 import entmax15
from neural.modules.compiled import plain_torch


def test_by_hand():
    # two scores d apart: weights ((d/2 ± √(2 − d²/4)) / 2)², for d < 2; from there on one takes all
    scores = torch.tensor([[0.0, 1.0], [0.0, 2.0], [5.0, 5.0], [0.0, 3.0]])
    low, high = ((1.75**0.5 - 0.5) / 2) ** 2, ((1.75**0.5 + 0.5) / 2) ** 2
    with plain_torch():
        found = entmax15(scores)
    torch.testing.assert_close(found, torch.tensor([[low, high], [0.0, 1.0], [0.5, 0.5], [0.0, 1.0]]))
