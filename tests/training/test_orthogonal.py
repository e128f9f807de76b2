"""Muon's step on a processor is torch's, but for the precision."""

import torch

from neural.training.orthogonal import muon, orthogonal

STANDARD = (3.4445, -4.7750, 2.0315)


def learners(kind, shapes, **settings):
    torch.manual_seed(0)
    parameters = [torch.nn.Parameter(torch.randn(shape)) for shape in shapes]
    return parameters, kind(parameters, lr=0.02, **settings)


def test_it_steps_as_torch_does():
    """torch rounds to bfloat16 on the way, which moves a step by less than a hundredth of its length."""
    shapes = [(7, 7), (7, 7), (13, 7), (7, 13), (7, 13)]
    ours, fast = learners(muon(), shapes, momentum=0.9, weight_decay=0.1)
    theirs, plain = learners(torch.optim.Muon, shapes, momentum=0.9, weight_decay=0.1)
    for _ in range(3):
        for mine, other in zip(ours, theirs, strict=True):
            mine.grad = torch.randn_like(mine)
            other.grad = mine.grad.clone()
        fast.step()
        plain.step()
    for mine, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine, other, rtol=0, atol=0.02 * 3 * 0.03)
    assert fast.state_dict()["state"].keys() == plain.state_dict()["state"].keys()
    for mine, other in zip(fast.state.values(), plain.state.values(), strict=True):
        torch.testing.assert_close(mine["momentum_buffer"], other["momentum_buffer"])


def test_what_has_no_gradient_stays():
    (still, moved), optimizer = learners(muon(), [(5, 3), (5, 3)])
    before = still.detach().clone()
    moved.grad = torch.randn(5, 3)
    optimizer.step()
    assert torch.equal(still, before)


def test_singular_values_come_near_one():
    x = torch.randn(4, 11, 5)
    values = torch.linalg.svdvals(orthogonal(x, STANDARD, 5, 1e-7))
    assert values.min() > 0.6
    assert values.max() < 1.3


def test_nothing_to_go_along_is_no_step():
    assert torch.equal(orthogonal(torch.zeros(1, 3, 5), STANDARD, 5, 1e-7), torch.zeros(1, 3, 5))
