"""1.5-entmax on known scores. test_sparse_softmax.py has its other tests."""

import torch

from neural.nn.attention.entmax15 import entmax15
from neural.nn.kernel_dispatch import no_kernels


def test_known_weights():
    # Two scores with difference d: weights ((d/2 ± √(2 − d²/4)) / 2)² for d < 2, else 0 and 1.
    scores = torch.tensor([[0.0, 1.0], [0.0, 2.0], [5.0, 5.0], [0.0, 3.0]])
    low, high = ((1.75**0.5 - 0.5) / 2) ** 2, ((1.75**0.5 + 0.5) / 2) ** 2
    with no_kernels():
        weights = entmax15(scores)
    torch.testing.assert_close(
        weights, torch.tensor([[low, high], [0.0, 1.0], [0.5, 0.5], [0.0, 1.0]])
    )
