"""Relation of importance to another measure of heads, its concentration, the time of its rise."""

import math

import numpy as np
import pytest
from importance_statistics import (
    compare_with_permutations,
    correlate_heads,
    count_effective_heads,
    find_half_rise,
    measure_gini,
)
from scipy.stats import spearmanr


def test_the_overall_correlation_is_spearmans():
    draw = np.random.default_rng(0)
    measure, importance = draw.normal(size=(2, 3, 5))
    expected = spearmanr(measure.ravel(), importance.ravel()).statistic
    assert correlate_heads(measure, importance).overall == pytest.approx(expected)


def test_a_difference_of_layers_is_no_correlation_within_them():
    draw = np.random.default_rng(1)
    layers = 100 * np.arange(3)[:, None]
    measures, importances = layers + draw.normal(size=(2, 20, 3, 8))
    correlations = [correlate_heads(*pair) for pair in zip(measures, importances, strict=True)]
    overall, within = np.mean(correlations, axis=0)
    assert overall > 0.8
    assert abs(within) < 0.15


def test_missing_heads_and_equal_values_are_left_out():
    measure = np.array([[1.0, 2.0, 3.0, np.nan], [1.0, 1.0, 1.0, 1.0]])
    importance = np.array([[3.0, 2.0, 1.0, 9.0], [1.0, 2.0, 3.0, 4.0]])
    assert correlate_heads(measure, importance).within_layers == pytest.approx(-1)
    assert math.isnan(correlate_heads(measure[1:], importance[1:]).within_layers)


def test_the_test_has_the_correlations_of_the_models():
    draw = np.random.default_rng(2)
    measures, importances = draw.normal(size=(2, 5, 3, 8))
    measures[:, 1, 5:] = np.nan
    test = compare_with_permutations(list(measures), list(importances), permutations=50)
    correlations = [correlate_heads(*pair) for pair in zip(measures, importances, strict=True)]
    assert test[:2] == pytest.approx(np.mean(correlations, axis=0))


def test_a_relation_that_no_permutation_reaches_has_the_smallest_p():
    measures = list(np.random.default_rng(3).normal(size=(5, 3, 8)))
    importances = [np.exp(measure) for measure in measures]
    test = compare_with_permutations(measures, importances, permutations=99)
    assert test == pytest.approx((1, 1, 0.01, 0.01))


@pytest.mark.parametrize(
    ("importance", "gini", "heads"),
    [([1, 1, 1, 1], 0, 4), ([0, 0, 0, 1], 0.75, 1), ([-1, 0, 2, 2], 0.5, 2)],
)
def test_concentration_of_known_distributions(importance, gini, heads):
    values = np.array([importance], float)
    assert measure_gini(values) == pytest.approx(gini)
    assert count_effective_heads(values) == pytest.approx(heads)


def test_importance_of_nothing_has_no_concentration():
    assert math.isnan(measure_gini(np.array([[-1.0, 0.0]])))
    assert math.isnan(count_effective_heads(np.array([[-1.0, 0.0]])))


def test_the_half_rise_is_interpolated():
    steps = np.array([0, 100, 200, 300, 400])
    assert find_half_rise(steps, np.array([0.0, 0.0, 1.0, 1.0, 1.0])) == 150
    assert find_half_rise(steps, np.array([0.0, 0.25, 0.5, 0.75, 1.0])) == 200
    assert find_half_rise(steps, np.array([0.0, 0.0, np.nan, 1.0, 1.0])) == 200


@pytest.mark.parametrize("values", [[3, 2, 1, 0], [1, 1, 1, 1], [0, 1, 2]])
def test_a_series_that_does_not_rise_has_no_half_rise(values):
    assert math.isnan(find_half_rise(np.arange(len(values)), np.array(values, float)))
