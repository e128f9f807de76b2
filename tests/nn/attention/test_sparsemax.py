"""Sparsemax: projection onto the simplex. test_sparse_softmax.py has its other tests."""

import torch

from neural.nn.attention.sparsemax import sparsemax
from neural.nn.kernel_dispatch import no_kernels


def test_known_weights():
    scores = torch.tensor([[0.0, 0.5, 1.0], [0.0, 3.0, 1.0], [2.0, 2.0, 2.0]])
    with no_kernels():
        weights = sparsemax(scores)
    torch.testing.assert_close(
        weights, torch.tensor([[0.0, 0.25, 0.75], [0.0, 1.0, 0.0], [1 / 3, 1 / 3, 1 / 3]])
    )
