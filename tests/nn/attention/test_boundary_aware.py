"""Boundary-aware attention: the definition, the half that cancels, and the scorer."""

import torch

from neural.nn.attention.boundary_aware import BoundaryAware
from neural.nn.mask import Mask
from tests.programs import load_network


def test_the_weights_equal_the_definition_in_nested_loops():
    torch.manual_seed(0)
    q, k, score = torch.randn(2, 3, 7, 5), torch.randn(2, 3, 7, 5), torch.rand(2, 7)
    bias = torch.zeros(2, 7, 7)
    for i in range(7):
        for j in range(7):
            bias[:, i, j] = (score[:, i] + score[:, j]) * 0.5
    expected = (q @ k.transpose(-1, -2) / 5**0.5 + bias.unsqueeze(1)).softmax(dim=-1)
    torch.testing.assert_close(BoundaryAware().weights(q, k, Mask(), score), expected)


def test_the_querys_half_of_the_bias_cancels():
    torch.manual_seed(0)
    q, k, v, score = (
        torch.randn(2, 3, 7, 5),
        torch.randn(2, 3, 7, 5),
        torch.randn(2, 3, 7, 4),
        torch.rand(2, 7),
    )
    key_half = (q @ k.transpose(-1, -2) / 5**0.5 + score[:, None, None, :] / 2).softmax(dim=-1)
    torch.testing.assert_close(BoundaryAware().attend(q, k, v, Mask(), extra=score), key_half @ v)


def test_a_bias_with_a_gradient_stays_on_the_fused_path():
    saved_sizes = []
    n = 257
    q, k, v = (torch.randn(1, 2, n, 8, requires_grad=True) for _ in range(3))
    score = torch.rand(1, n, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(
        lambda tensor: saved_sizes.append(tensor.numel()) or tensor, lambda tensor: tensor
    ):
        BoundaryAware().attend(q, k, v, Mask(), extra=score)
    assert max(saved_sizes) < n * n


def test_the_scorer_has_the_documented_size_and_keeps_its_logits():
    from neural.nn.build import build

    layer = 'MultiHeadAttention(num_heads=2, attention="boundary_aware")'
    program = load_network(f"network A {{\n  input: (9, 12)\n  layers:\n    {layer}\n}}")
    module = build(program)
    scorer = module.multi_head_attention.learned
    assert sum(param.numel() for param in scorer.parameters()) == 12 * 6 + 2 * 6 + 1
    assert sum(param.numel() for param in module.parameters()) == program.cost.parameters
    module(torch.randn(2, 9, 12))
    assert scorer.logits.shape == (2, 9)
    scorer.logits.sum().backward()  # what an auxiliary boundary loss does
    assert scorer.up.weight.grad is not None


def test_inputs_of_width_1_have_a_boundary_score():
    mechanism = BoundaryAware()
    scorer = mechanism.build_learned(width=1, heads=1, head_width=1)
    assert scorer(torch.zeros(2, 5, 1)).shape == (2, 5)
    count = sum(parameter.numel() for parameter in scorer.parameters())
    assert mechanism.learned_cost(1, 1, 1, keys=5).parameters == count == 4
