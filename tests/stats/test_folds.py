"""Means over folds, with intervals that are corrected for shared training examples."""

import math

import numpy as np
import pytest
from scipy import stats

from neural.stats.folds import (
    average_seeds,
    compare_folds,
    compute_standard_error,
    estimate_fold_mean,
)

SCORES = [0.5, 0.7, 0.6, 0.9, 0.4]


def test_the_interval_is_that_of_nadeau_and_bengio():
    estimate = estimate_fold_mean(SCORES, 5)
    error = np.std(SCORES, ddof=1) * math.sqrt(1 / 5 + 1 / 4)
    assert compute_standard_error(SCORES, 5) == pytest.approx(error)
    low, high = stats.t.interval(0.95, 4, np.mean(SCORES), error)
    assert (estimate.value, estimate.low, estimate.high) == pytest.approx((0.62, low, high))
    assert estimate.n == 5


@pytest.mark.parametrize("scores", [[0.5], [0.5, 0.5, 0.5]])
def test_one_fold_or_equal_scores_have_no_interval(scores):
    estimate = estimate_fold_mean(scores, 5)
    assert estimate.value == 0.5
    assert math.isnan(estimate.low)


def test_seeds_of_a_fold_are_averaged():
    means = average_seeds({"1/2": {0: 1.0, 1: 3.0}, "2/2": {0: math.nan, 1: 5.0}, "x": {}})
    assert means["1/2"] == 2.0 and list(means) == ["1/2", "2/2"]
    assert math.isnan(means["2/2"])  # a training failed


def test_settings_are_compared_by_pairs_of_folds():
    best = {fold: {0: score} for fold, score in enumerate(SCORES)}
    other = {fold: {0: score + 0.2 + fold / 100} for fold, score in enumerate(SCORES)}
    (comparison,) = compare_folds([other], best, 5, larger_is_better=False)
    assert comparison.verdict == "worse"
    assert comparison.difference.value == pytest.approx(0.22)
    differences = [0.2 + fold / 100 for fold in range(5)]
    statistic = np.mean(differences) / compute_standard_error(differences, 5)
    assert comparison.p == pytest.approx(2 * stats.t.sf(statistic, 4))
    noisy = {fold: {0: score + (-1) ** fold} for fold, score in enumerate(SCORES)}
    assert compare_folds([noisy], best, 5, larger_is_better=False)[0].verdict == "undecided"
