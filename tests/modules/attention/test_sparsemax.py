"""Sparsemax: the projection onto the simplex; what it shares with the other one is in test_sparse_softmax.py."""

import torch

from neural.modules.attention.sparsemax import sparsemax
from neural.modules.compiled import plain_torch


def test_by_hand():
    scores = torch.tensor([[0.0, 0.5, 1.0], [0.0, 3.0, 1.0], [2.0, 2.0, 2.0]])
    with plain_torch():
        found = sparsemax(scores)
    torch.testing.assert_close(found, torch.tensor([[0.0, 0.25, 0.75], [0.0, 1.0, 0.0], [1 / 3, 1 / 3, 1 / 3]]))
