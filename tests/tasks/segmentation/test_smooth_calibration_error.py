"""Smooth calibration error: value, and the range of a perfect model."""

import numpy as np
import pytest

from neural.tasks.segmentation.smooth_calibration_error import (
    GRID_CELLS,
    estimate_smooth_error,
    smooth_errors,
)


def sample_documents(seed, *, count=40, length=81, shift=0.0):
    """Probabilities, and boundaries whose log-odds are larger by `shift`."""
    rng, probabilities, truths = np.random.default_rng(seed), [], []
    for _ in range(count):
        margins = rng.normal(-2, 1.2, length)
        probabilities.append(1 / (1 + np.exp(-margins)))
        truths.append(rng.random(length) < 1 / (1 + np.exp(-margins - shift)))
    return probabilities, truths


def smooth_directly(p, hits, bandwidth):
    """Error at a bandwidth by its definition: an integral of the smoothed residuals."""
    points = (np.arange(4000) + 0.5) / 4000
    total = np.zeros(len(points))
    for copy in (p, -p, 2 - p):  # reflected at 0 and at 1
        distance = (points[:, None] - copy[None]) / bandwidth
        kernel = np.exp(-(distance**2) / 2) / (bandwidth * np.sqrt(2 * np.pi))
        total += (kernel * (hits - p)).sum(axis=1)
    return np.abs(total / len(p)).mean()


@pytest.mark.parametrize("shift", [0.0, 1.0, -1.5])
def test_the_error_equals_its_bandwidth(shift):
    probabilities, truths = sample_documents(0, count=10, shift=shift)
    error = estimate_smooth_error(probabilities, truths).value
    p = np.concatenate([document[1:] for document in probabilities])
    hits = np.concatenate([document[1:] for document in truths])
    assert smooth_directly(p, hits, error) == pytest.approx(error, rel=0.02)


def test_a_confident_and_wrong_model_has_the_error_of_its_residuals():
    residuals = np.zeros((1, GRID_CELLS))
    residuals[0, -1] = -1.0  # P = 1, and it never happens
    error = float(smooth_errors(residuals)[0])
    assert 0.9 < error <= 1.0


def test_a_perfect_model_is_rarely_above_chance_and_a_bad_one_always():
    perfect = [estimate_smooth_error(*sample_documents(seed)) for seed in range(30)]
    assert sum(error.is_above_chance for error in perfect) <= 4
    means = [error.perfect_model.value for error in perfect]
    assert np.mean([error.value for error in perfect]) == pytest.approx(np.mean(means), rel=0.2)
    shifted = [estimate_smooth_error(*sample_documents(seed, shift=0.7)) for seed in range(5)]
    assert all(error.is_above_chance for error in shifted)


def test_equal_documents_widen_the_range_of_a_perfect_model():
    probabilities, truths = sample_documents(0)
    alone = estimate_smooth_error(probabilities, truths).perfect_model.value
    repeated = [np.concatenate([document] * 4) for document in probabilities]
    correlated = estimate_smooth_error(
        repeated, [np.concatenate([document] * 4) for document in truths]
    ).perfect_model.value
    # Four copies are no more evidence than one: independent elements would halve the range.
    assert correlated > 0.8 * alone


def test_one_document_is_enough_and_one_element_is_not():
    probabilities, truths = sample_documents(0, count=1)
    assert estimate_smooth_error(probabilities, truths).perfect_model.value > 0
    with pytest.raises(ValueError, match="no gap to predict"):
        estimate_smooth_error([np.array([0.0])], [np.array([False])])
