"""Scores, probabilities, log loss and Brier score."""

import numpy as np
import pytest

from neural.tasks.segmentation.probability import (
    MIN_PROBABILITY,
    check_scores,
    compute_confidence,
    element_brier_scores,
    element_log_losses,
    log_loss,
    probabilities_to_margins,
    scores_to_probabilities,
)


def test_margins_and_probabilities_round_trip():
    p = np.array([1e-12, 0.01, 0.5, 0.99])
    np.testing.assert_allclose(scores_to_probabilities(probabilities_to_margins(p)), p, rtol=1e-9)


def test_certain_probabilities_have_finite_margins():
    np.testing.assert_allclose(
        probabilities_to_margins([0.0, 1.0]),
        [np.log(MIN_PROBABILITY), -np.log(MIN_PROBABILITY)],
        rtol=1e-3,
    )


@pytest.mark.parametrize("value", [-0.1, 1.1, np.nan])
def test_invalid_probabilities_are_refused(value):
    with pytest.raises(ValueError, match="between 0 and 1"):
        probabilities_to_margins([0.5, value])


def test_huge_logits_keep_their_differences():
    scores = check_scores([[1e9, 1e9 - 1, -np.inf]])
    np.testing.assert_allclose(
        scores_to_probabilities(scores), [[1 / (1 + np.exp(-1)), 1 / (1 + np.e), 0]], rtol=1e-9
    )
    np.testing.assert_allclose(
        scores_to_probabilities(check_scores([[np.inf, np.inf]])), [[0.5, 0.5]]
    )


def test_losses_by_hand():
    p, truth = np.array([0.9, 0.2, 0.0]), np.array([1, 0, 1])
    np.testing.assert_allclose(
        element_log_losses(p, truth), [-np.log(0.9), -np.log(0.8), -np.log(MIN_PROBABILITY)]
    )
    np.testing.assert_allclose(element_brier_scores(p, truth), [0.01, 0.04, 1])
    assert log_loss(p[:2], truth[:2]) == pytest.approx(-np.log(0.72) / 2)
    rows, classes = np.array([[0.7, 0.2, 0.1], [0.0, 1.0, 0.0]]), np.array([1, 0])
    np.testing.assert_allclose(
        element_log_losses(rows, classes), [-np.log(0.2), -np.log(MIN_PROBABILITY)]
    )
    np.testing.assert_allclose(element_brier_scores(rows, classes), [0.49 + 0.64 + 0.01, 2])


def test_confidence_is_that_of_the_most_likely_class_or_of_yes():
    p, hits = compute_confidence(np.array([[0.7, 0.3], [0.4, 0.6]]), np.array([0, 0]))
    np.testing.assert_allclose(p, [0.7, 0.6])
    np.testing.assert_allclose(hits, [1, 0])
    p, hits = compute_confidence(np.array([0.2, 0.6]), np.array([1, 0]))
    np.testing.assert_allclose(p, [0.2, 0.6])
    np.testing.assert_allclose(hits, [1, 0])
