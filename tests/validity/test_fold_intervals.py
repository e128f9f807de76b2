"""Coverage of the intervals over folds, and false verdicts between two equally good settings.

The method is ridge regression with its closed form. The truth is the mean over all simulated data
sets, which are independent of each other.
"""

import numpy as np
import pytest

from neural.stats.folds import compare_folds, estimate_fold_mean

DATA_SETS = 300
SHAPES = [(100, 5, 5), (60, 5, 3), (50, 10, 5)]
"""Rows, features and folds."""


def score_folds(x, y, folds):
    """Mean squared error on each fold of the regression on the others."""
    fold_numbers = np.arange(len(y)) % folds
    scores = []
    for fold in range(folds):
        train, held_out = fold_numbers != fold, fold_numbers == fold
        gram = x[train].T @ x[train] + np.eye(x.shape[1])
        weights = np.linalg.solve(gram, x[train].T @ y[train])
        scores.append(float(np.mean((x[held_out] @ weights - y[held_out]) ** 2)))
    return scores


@pytest.mark.parametrize(("rows", "features", "folds"), SHAPES)
def test_the_interval_over_folds_holds_the_expected_score(rows, features, folds):
    draw = np.random.default_rng(0)
    scores = []
    for _ in range(DATA_SETS):
        x = draw.normal(size=(rows, features))
        scores.append(score_folds(x, x.sum(axis=1) / 2 + draw.normal(size=rows), folds))
    truth = np.mean(scores)
    estimates = [estimate_fold_mean(values, folds) for values in scores]
    coverage = np.mean([estimate.low <= truth <= estimate.high for estimate in estimates])
    assert 0.93 <= coverage <= 0.995


@pytest.mark.parametrize(("rows", "features", "folds"), SHAPES)
def test_two_equal_settings_rarely_get_a_verdict(rows, features, folds):
    """Each setting sees half of the features, and all features are equally useful."""
    draw = np.random.default_rng(1)
    verdicts = []
    for _ in range(DATA_SETS):
        x = draw.normal(size=(rows, 2 * features))
        y = 0.3 * x.sum(axis=1) + draw.normal(size=rows)
        settings = [score_folds(half, y, folds) for half in np.split(x, 2, axis=1)]
        best, other = sorted(settings, key=np.mean)
        by_fold = [
            {fold: {0: score} for fold, score in enumerate(scores)} for scores in (other, best)
        ]
        (comparison,) = compare_folds(by_fold[:1], by_fold[1], folds, larger_is_better=False)
        verdicts.append(comparison.verdict)
    assert "better" not in verdicts
    assert verdicts.count("worse") <= 0.05 * DATA_SETS
