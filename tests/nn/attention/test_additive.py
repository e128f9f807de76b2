"""Additive attention, against the formula of the paper."""

import torch

from neural.nn.attention.additive import Additive
from neural.nn.mask import Mask
from neural.nn.multi_head_attention import MultiHeadAttentionModule

B, H, Q, K, D = 2, 3, 5, 7, 11


def test_it_is_the_formula_of_the_paper():
    torch.manual_seed(0)
    q, k, u = (
        torch.randn(*shape, dtype=torch.float64) for shape in ((B, H, Q, D), (B, H, K, D), (H, D))
    )
    w = Additive().weights(q, k, Mask(), u)
    for b in range(B):
        for h in range(H):
            for i in range(Q):
                scores = torch.stack([u[h] @ torch.tanh(q[b, h, i] + k[b, h, j]) for j in range(K)])
                torch.testing.assert_close(w[b, h, i], scores.softmax(dim=0))


def test_known_weights():
    q, k = torch.zeros(1, 1, 1, 1), torch.tensor([0.0, torch.inf]).view(1, 1, 2, 1)
    w = Additive().weights(q, k, Mask(), torch.tensor([[torch.log(torch.tensor(3.0))]]))
    torch.testing.assert_close(w.flatten(), torch.tensor([0.25, 0.75]))  # scores 0 and log 3


def test_the_score_vector_has_a_gradient():
    torch.manual_seed(0)
    attention = MultiHeadAttentionModule(12, 3, 4, Additive())
    attention(torch.randn(2, 5, 12)).square().sum().backward()
    assert attention.learned.u.shape == (3, 4)
    assert attention.learned.u.grad.abs().min() > 0
