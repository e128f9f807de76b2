"""The loss and what may be added to it, on cases small enough to compute by hand."""

import math

import numpy as np
import pytest
import torch
from torch.nn import functional

from neural.tasks.cutting.losses import balanced, beside_boundaries, boundary_loss, cross_entropy, entropy, inner

EVEN = torch.zeros(1, 3, 2)
SURE = torch.tensor([[[math.log(3), 0.0], [0.0, math.log(3)], [0.0, 0.0]]])   # 3:1, 1:3, 1:1
TARGET = torch.tensor([[0, 0, 1]])
ALL = torch.ones(1, 3, dtype=torch.bool)


def test_the_plain_loss_is_the_mean_surprise():
    assert cross_entropy(EVEN, TARGET, ALL).item() == pytest.approx(math.log(2))
    wanted = -(math.log(3 / 4) + math.log(1 / 4) + math.log(1 / 2)) / 3
    assert cross_entropy(SURE, TARGET, ALL).item() == pytest.approx(wanted)


def test_padding_does_not_count():
    mask = torch.tensor([[True, False, False]])
    assert cross_entropy(SURE, TARGET, mask).item() == pytest.approx(-math.log(3 / 4))
    assert entropy(SURE, torch.tensor([[False, False, True]])).item() == pytest.approx(math.log(2))


def test_where_nothing_counts_the_loss_is_zero_and_so_are_its_gradients():
    scores = SURE.clone().requires_grad_()
    nothing = torch.zeros_like(ALL)
    loss = cross_entropy(scores, TARGET, nothing) + entropy(scores, nothing)
    loss.backward()
    assert loss.item() == 0
    assert (scores.grad == 0).all()


def test_smoothing_gives_a_share_to_every_class():
    each = [0.9 * -math.log(p) + 0.05 * -math.log(p) + 0.05 * -math.log(1 - p) for p in (3 / 4, 1 / 4, 1 / 2)]
    assert cross_entropy(SURE, TARGET, ALL, label_smoothing=0.1).item() == pytest.approx(sum(each) / 3)


def test_it_is_torchs_where_torch_has_it():
    torch.manual_seed(0)
    scores, target, weights = torch.randn(3, 7, 4), torch.randint(4, (3, 7)), torch.rand(4)
    mask = torch.rand(3, 7) > 0.3
    plain = functional.cross_entropy(scores[mask], target[mask], label_smoothing=0.2)
    assert cross_entropy(scores, target, mask, label_smoothing=0.2).item() == pytest.approx(plain.item())
    weighted = functional.cross_entropy(scores[mask], target[mask], weight=weights)
    assert cross_entropy(scores, target, mask, class_weights=weights).item() == pytest.approx(weighted.item(), rel=1e-5)


def test_a_class_of_no_weight_is_not_learned():
    found = cross_entropy(SURE, TARGET, ALL, class_weights=torch.tensor([0.0, 5.0]))
    assert found.item() == pytest.approx(math.log(2))


def test_balanced_weights_make_every_class_count_alike():
    targets = [np.array([0, 0, 0]), np.array([0, 0, 1, 1, 0])]
    weights = balanced(targets, 3)
    assert weights.tolist() == pytest.approx([8 / (2 * 6), 8 / (2 * 2), 0])


def test_both_sides_of_a_boundary_weigh_more():
    boundaries = torch.tensor([[False, False, True, False, False, True]])
    mask = torch.tensor([[True] * 5 + [False]])   # the last one is padding, and ends nothing
    assert beside_boundaries(boundaries, mask, 3.0).tolist() == [[1, 3, 3, 1, 1, 1]]
    assert beside_boundaries(boundaries, mask, 1.0).eq(1).all()


def test_elements_count_as_often_as_their_weight_says():
    found = cross_entropy(SURE, TARGET, ALL, element_weights=torch.tensor([[2.0, 1.0, 0.0]]))
    assert found.item() == pytest.approx(-(2 * math.log(3 / 4) + math.log(1 / 4)) / 3)


def test_entropy_is_log_two_where_undecided_and_its_reward_makes_less_sure():
    assert entropy(EVEN, ALL).item() == pytest.approx(math.log(2))
    assert entropy(SURE * 1e3, torch.tensor([[True, True, False]])).item() == pytest.approx(0)
    scores = SURE.clone().requires_grad_()
    (-entropy(scores, ALL)).backward()
    assert scores.grad[0, 0, 0] > 0   # a step against the gradient lowers the score that leads


def test_boundary_scores_are_learned_as_yes_or_no():
    logits = torch.tensor([[5.0, 0.0, math.log(3)]])
    truth, mask = torch.tensor([[False, False, True]]), torch.tensor([[False, True, True]])
    wanted = (math.log(2) + math.log(4 / 3)) / 2
    assert boundary_loss(logits, truth, mask).item() == pytest.approx(wanted)


def test_the_first_element_of_a_document_is_left_out_but_not_that_of_a_later_piece():
    mask = torch.tensor([[True, True, False], [True, True, True]])
    assert inner(mask, torch.tensor([0, 512])).tolist() == [[False, True, False], [True, True, True]]
