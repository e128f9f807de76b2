"""Scores and probabilities, and how wrong they were."""

import numpy as np
import pytest

from neural.tasks.cutting.probability import (
    SMALLEST,
    as_scores,
    confidence,
    log_loss,
    losses,
    margins,
    plain_probabilities,
    squares,
)  # fmt: skip


def test_margins_and_probabilities_are_one_thing():
    p = np.array([1e-12, 0.01, 0.5, 0.99])
    np.testing.assert_allclose(plain_probabilities(margins(p)), p, rtol=1e-9)


def test_certain_probabilities_have_finite_margins():
    np.testing.assert_allclose(margins([0.0, 1.0]), [np.log(SMALLEST), -np.log(SMALLEST)], rtol=1e-3)


@pytest.mark.parametrize("wrong", [-0.1, 1.1, np.nan])
def test_what_is_no_probability_is_refused(wrong):
    with pytest.raises(ValueError, match="between 0 and 1"):
        margins([0.5, wrong])


def test_huge_logits_keep_their_differences():
    near = as_scores([[1e9, 1e9 - 1, -np.inf]])
    np.testing.assert_allclose(plain_probabilities(near), [[1 / (1 + np.exp(-1)), 1 / (1 + np.e), 0]], rtol=1e-9)
    np.testing.assert_allclose(plain_probabilities(as_scores([[np.inf, np.inf]])), [[0.5, 0.5]])


def test_losses_by_hand():
    p, truth = np.array([0.9, 0.2, 0.0]), np.array([1, 0, 1])
    np.testing.assert_allclose(losses(p, truth), [-np.log(0.9), -np.log(0.8), -np.log(SMALLEST)])
    np.testing.assert_allclose(squares(p, truth), [0.01, 0.04, 1])
    assert log_loss(p[:2], truth[:2]) == pytest.approx(-np.log(0.72) / 2)
    rows, classes = np.array([[0.7, 0.2, 0.1], [0.0, 1.0, 0.0]]), np.array([1, 0])
    np.testing.assert_allclose(losses(rows, classes), [-np.log(0.2), -np.log(SMALLEST)])
    np.testing.assert_allclose(squares(rows, classes), [0.49 + 0.64 + 0.01, 2])


def test_confidence_is_of_the_likeliest_class_and_of_yes():
    p, hits = confidence(np.array([[0.7, 0.3], [0.4, 0.6]]), np.array([0, 0]))
    np.testing.assert_allclose(p, [0.7, 0.6])
    np.testing.assert_allclose(hits, [1, 0])
    p, hits = confidence(np.array([0.2, 0.6]), np.array([1, 0]))
    np.testing.assert_allclose(p, [0.2, 0.6])
    np.testing.assert_allclose(hits, [1, 0])
