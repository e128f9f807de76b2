"""Additive attention, against the formula of the paper."""

import torch

from neural.modules.attention.additive import Additive
from neural.modules.heads import Heads
from neural.modules.mask import Mask

B, H, Q, K, D = 2, 3, 5, 7, 11


def test_it_is_the_formula_of_the_paper():
    torch.manual_seed(0)
    q, k, u = (torch.randn(*shape, dtype=torch.float64) for shape in ((B, H, Q, D), (B, H, K, D), (H, D)))
    w = Additive().weights(q, k, Mask(), u)
    for b in range(B):
        for h in range(H):
            for i in range(Q):
                scores = torch.stack([u[h] @ torch.tanh(q[b, h, i] + k[b, h, j]) for j in range(K)])
                torch.testing.assert_close(w[b, h, i], scores.softmax(dim=0))


def test_by_hand():
    q, k = torch.zeros(1, 1, 1, 1), torch.tensor([0.0, torch.inf]).view(1, 1, 2, 1)
    w = Additive().weights(q, k, Mask(), torch.tensor([[torch.log(torch.tensor(3.0))]]))
    torch.testing.assert_close(w.flatten(), torch.tensor([0.25, 0.75]))   # scores 0 and log 3


def test_its_direction_learns_with_the_layer():
    torch.manual_seed(0)
    heads = Heads(12, 3, 4, Additive())
    heads(torch.randn(2, 5, 12)).square().sum().backward()
    assert heads.learned.u.shape == (3, 4)
    assert heads.learned.u.grad.abs().min() > 0
