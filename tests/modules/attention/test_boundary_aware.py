"""Boundary-aware attention: nested loops as a text writes them, the half that cancels, and the scorer."""

import torch

from neural.modules.attention.boundary_aware import BoundaryAware
from neural.modules.mask import Mask
from tests.programs import network


def test_the_definition_is_the_nested_loops_of_the_document():
    torch.manual_seed(0)
    q, k, score = torch.randn(2, 3, 7, 5), torch.randn(2, 3, 7, 5), torch.rand(2, 7)
    bias = torch.zeros(2, 7, 7)
    for i in range(7):
        for j in range(7):
            bias[:, i, j] = (score[:, i] + score[:, j]) * 0.5
    wanted = (q @ k.transpose(-1, -2) / 5**0.5 + bias.unsqueeze(1)).softmax(dim=-1)
    torch.testing.assert_close(BoundaryAware().weights(q, k, Mask(), score), wanted)


def test_the_querys_half_changes_nothing():
    torch.manual_seed(0)
    q, k, v, score = torch.randn(2, 3, 7, 5), torch.randn(2, 3, 7, 5), torch.randn(2, 3, 7, 4), torch.rand(2, 7)
    keys_alone = (q @ k.transpose(-1, -2) / 5**0.5 + score[:, None, None, :] / 2).softmax(dim=-1)
    torch.testing.assert_close(BoundaryAware().mix(q, k, v, Mask(), extra=score), keys_alone @ v)


def test_a_bias_that_learns_stays_on_the_fused_path():
    kept = []
    n = 257
    q, k, v = (torch.randn(1, 2, n, 8, requires_grad=True) for _ in range(3))
    score = torch.rand(1, n, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda one: kept.append(one.numel()) or one, lambda one: one):
        BoundaryAware().mix(q, k, v, Mask(), extra=score)
    assert max(kept) < n * n


def test_the_scorer_has_the_documents_size_and_shows_its_logits():
    from neural.modules.build import build

    layer = 'MultiHeadAttention(num_heads=2, attention="boundary_aware")'
    made = network(f"network A {{\n  input: (9, 12)\n  layers:\n    {layer}\n}}")
    module = build(made)
    scorer = module.multi_head_attention.learned
    assert sum(one.numel() for one in scorer.parameters()) == 12 * 6 + 2 * 6 + 1
    assert sum(one.numel() for one in module.parameters()) == made.cost.parameters
    module(torch.randn(2, 9, 12))
    assert scorer.logits.shape == (2, 9)
    scorer.logits.sum().backward()   # what an auxiliary boundary loss does
    assert scorer.up.weight.grad is not None
