"""Terms of the loss, on cases small enough to compute by hand."""

import math

import numpy as np
import pytest
import torch
from torch.nn import functional

from neural.tasks.segmentation.losses import (
    boundary_loss,
    compute_class_weights,
    cross_entropy,
    mask_gaps,
    mean_entropy,
    weight_near_boundaries,
)

UNIFORM_LOGITS = torch.zeros(1, 3, 2)
LOGITS = torch.tensor([[[math.log(3), 0.0], [0.0, math.log(3)], [0.0, 0.0]]])  # 3:1, 1:3, 1:1
TARGETS = torch.tensor([[0, 0, 1]])
FULL_MASK = torch.ones(1, 3, dtype=torch.bool)


def test_the_unweighted_loss_is_the_mean_log_loss():
    assert cross_entropy(UNIFORM_LOGITS, TARGETS, FULL_MASK).item() == pytest.approx(math.log(2))
    expected = -(math.log(3 / 4) + math.log(1 / 4) + math.log(1 / 2)) / 3
    assert cross_entropy(LOGITS, TARGETS, FULL_MASK).item() == pytest.approx(expected)


def test_padding_does_not_count():
    mask = torch.tensor([[True, False, False]])
    assert cross_entropy(LOGITS, TARGETS, mask).item() == pytest.approx(-math.log(3 / 4))
    assert mean_entropy(LOGITS, torch.tensor([[False, False, True]])).item() == pytest.approx(
        math.log(2)
    )


def test_with_an_empty_mask_the_loss_and_its_gradients_are_zero():
    scores = LOGITS.clone().requires_grad_()
    mask = torch.zeros_like(FULL_MASK)
    loss = cross_entropy(scores, TARGETS, mask) + mean_entropy(scores, mask)
    loss.backward()
    assert loss.item() == 0
    assert (scores.grad == 0).all()


def test_smoothing_gives_a_share_to_every_class():
    losses = [
        0.9 * -math.log(p) + 0.05 * -math.log(p) + 0.05 * -math.log(1 - p)
        for p in (3 / 4, 1 / 4, 1 / 2)
    ]
    assert cross_entropy(LOGITS, TARGETS, FULL_MASK, label_smoothing=0.1).item() == pytest.approx(
        sum(losses) / 3
    )


def test_it_equals_the_loss_of_torch():
    torch.manual_seed(0)
    scores, target, weights = torch.randn(3, 7, 4), torch.randint(4, (3, 7)), torch.rand(4)
    mask = torch.rand(3, 7) > 0.3
    smoothed = functional.cross_entropy(scores[mask], target[mask], label_smoothing=0.2)
    assert cross_entropy(scores, target, mask, label_smoothing=0.2).item() == pytest.approx(
        smoothed.item()
    )
    weighted = functional.cross_entropy(scores[mask], target[mask], weight=weights)
    assert cross_entropy(scores, target, mask, class_weights=weights).item() == pytest.approx(
        weighted.item(), rel=1e-5
    )


def test_a_class_of_weight_zero_is_ignored():
    loss = cross_entropy(LOGITS, TARGETS, FULL_MASK, class_weights=torch.tensor([0.0, 5.0]))
    assert loss.item() == pytest.approx(math.log(2))


def test_balanced_weights_are_inverse_to_the_class_frequency():
    targets = [np.array([0, 0, 0]), np.array([0, 0, 1, 1, 0])]
    weights = compute_class_weights(targets, 3)
    assert weights.tolist() == pytest.approx([8 / (2 * 6), 8 / (2 * 2), 0])


def test_both_sides_of_a_boundary_are_weighted():
    boundaries = torch.tensor([[False, False, True, False, False, True]])
    mask = torch.tensor([[True] * 5 + [False]])  # the last element is padding
    assert weight_near_boundaries(boundaries, mask, 3.0).tolist() == [[1, 3, 3, 1, 1, 1]]
    assert weight_near_boundaries(boundaries, mask, 1.0).eq(1).all()


def test_elements_count_by_their_weight():
    loss = cross_entropy(
        LOGITS, TARGETS, FULL_MASK, element_weights=torch.tensor([[2.0, 1.0, 0.0]])
    )
    assert loss.item() == pytest.approx(-(2 * math.log(3 / 4) + math.log(1 / 4)) / 3)


def test_entropy_is_log_two_for_a_uniform_output_and_rewarding_it_reduces_confidence():
    assert mean_entropy(UNIFORM_LOGITS, FULL_MASK).item() == pytest.approx(math.log(2))
    assert mean_entropy(LOGITS * 1e3, torch.tensor([[True, True, False]])).item() == pytest.approx(
        0
    )
    scores = LOGITS.clone().requires_grad_()
    (-mean_entropy(scores, FULL_MASK)).backward()
    assert scores.grad[0, 0, 0] > 0  # gradient descent lowers the largest logit


def test_the_boundary_loss_is_binary_cross_entropy():
    logits = torch.tensor([[5.0, 0.0, math.log(3)]])
    truth, mask = torch.tensor([[False, False, True]]), torch.tensor([[False, True, True]])
    expected = (math.log(2) + math.log(4 / 3)) / 2
    assert boundary_loss(logits, truth, mask).item() == pytest.approx(expected)


def test_the_first_element_of_a_document_is_masked_but_not_that_of_a_later_chunk():
    mask = torch.tensor([[True, True, False], [True, True, True]])
    assert mask_gaps(mask, torch.tensor([0, 512])).tolist() == [
        [False, True, False],
        [True, True, True],
    ]
