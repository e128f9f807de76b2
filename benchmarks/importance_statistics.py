"""Statistics of head importance: relation to another measure, concentration, time of its rise.

    correlate_heads(measure, importance)            rank correlation over the heads of one model
    compare_with_permutations(measures, importances)    is it more than chance, over several models?
    measure_gini(importance)                        0: all heads matter equally, 1: one head does
    count_effective_heads(importance)               number of heads that share the importance
    find_half_rise(steps, values)                   when a series passed half of its rise

Layers differ in many ways at once: heads of the first layer may both have a low entropy and matter
much, without any relation between the two. So correlations are also computed within layers, and the
test permutes heads within layers only. Error rates and power are simulated in
tests/benchmarks/test_importance_error_rates.py.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.optimize import isotonic_regression
from scipy.stats import rankdata

from neural.findings.run_loading import finite_mean
from neural.stats.estimate import ROUNDING_TOLERANCE

DEFAULT_PERMUTATIONS = 2000
MIN_HEADS = 3
"""Layers with fewer measured heads have no correlation within the layer."""
MIN_RISE_STEPS = 4
"""Shorter series have no time of their rise."""


class HeadCorrelation(NamedTuple):
    """Rank correlation of two measures of the heads of one model; NaN where it is not defined."""

    overall: float
    """Spearman's, over all heads."""
    within_layers: float
    """The mean of the layers' own Spearman correlations."""


class HeadCorrelationTest(NamedTuple):
    """Correlations averaged over models, and their p-values under permutation within layers."""

    overall: float
    within_layers: float
    overall_p: float
    """Two-sided: the null keeps what layers have in common, so its mean need not be 0."""
    within_layers_p: float


def correlate_heads(measure: np.ndarray, importance: np.ndarray) -> HeadCorrelation:
    """Rank correlation of two arrays [layer, head]; heads with NaN in either are left out."""
    is_measured = np.isfinite(measure) & np.isfinite(importance)
    within = [
        _correlate_ranks(layer_measure[heads], layer_importance[heads])
        for layer_measure, layer_importance, heads in zip(
            measure, importance, is_measured, strict=True
        )
        if heads.sum() >= MIN_HEADS
    ]
    finite = [value for value in within if math.isfinite(value)]
    return HeadCorrelation(
        _correlate_ranks(measure[is_measured], importance[is_measured]),
        float(np.mean(finite)) if finite else math.nan,
    )


def compare_with_permutations(
    measures: Sequence[np.ndarray],
    importances: Sequence[np.ndarray],
    *,
    permutations: int = DEFAULT_PERMUTATIONS,
    seed: int = 0,
) -> HeadCorrelationTest:
    """Test whether heads with a larger measure have a larger or smaller importance.

    Both have one array [layer, head] per model. The null permutes the heads of every layer.
    """
    random = np.random.default_rng(seed)
    actual = [
        correlate_heads(measure, importance)
        for measure, importance in zip(measures, importances, strict=True)
    ]
    null = np.stack(
        [
            _permute_correlations(measure, importance, permutations, random)
            for measure, importance in zip(measures, importances, strict=True)
        ]
    )  # [model, permutation, statistic]
    means, null_means = finite_mean(np.array(actual), axis=0), finite_mean(null, axis=0)
    center = null_means.mean(axis=0)
    is_as_far = np.abs(null_means - center) >= np.abs(means - center) - ROUNDING_TOLERANCE
    overall_p, within_p = (is_as_far.sum(axis=0) + 1) / (permutations + 1)
    return HeadCorrelationTest(float(means[0]), float(means[1]), float(overall_p), float(within_p))


def measure_gini(importance: np.ndarray) -> float:
    """Gini coefficient of importance; negative values count as 0. NaN if no head matters."""
    values = np.sort(_get_positive_part(importance))
    total, count = values.sum(), len(values)
    if not total > 0:
        return math.nan
    ranks = np.arange(1, count + 1)
    return float((2 * ranks - count - 1) @ values / (count * total))


def count_effective_heads(importance: np.ndarray) -> float:
    """(Σ x)² / Σ x² of importance x; negative values count as 0. NaN if no head matters.

    n heads of equal importance count as n, whatever the number of heads without any.
    """
    values = _get_positive_part(importance)
    return float(values.sum() ** 2 / (values**2).sum()) if values.any() else math.nan


def find_half_rise(steps: np.ndarray, values: np.ndarray, level: float = 0.5) -> float:
    """The step at which a series passed `level` of its rise, linearly interpolated.

    The series is first replaced by the nearest one that never falls (isotonic regression), so that
    noise neither delays nor advances the step. NaN if the series does not rise.
    """
    finite = np.isfinite(values)
    steps, values = steps[finite], values[finite]
    if len(values) < MIN_RISE_STEPS:
        return math.nan
    rising = isotonic_regression(values).x
    start, end = float(rising[0]), float(rising[-1])
    if not end - start > ROUNDING_TOLERANCE * max(1.0, abs(end)):
        return math.nan
    threshold = start + level * (end - start)
    after = int(np.argmax(rising >= threshold))
    share = (threshold - rising[after - 1]) / (rising[after] - rising[after - 1])
    return float(steps[after - 1] + share * (steps[after] - steps[after - 1]))


def _get_positive_part(importance: np.ndarray) -> np.ndarray:
    return np.maximum(importance[np.isfinite(importance)], 0.0)


def _correlate_ranks(x: np.ndarray, y: np.ndarray) -> float:
    if len(x) < MIN_HEADS or np.ptp(x) == 0 or np.ptp(y) == 0:
        return math.nan
    return float(np.corrcoef(rankdata(x), rankdata(y))[0, 1])


def _permute_correlations(
    measure: np.ndarray, importance: np.ndarray, permutations: int, random: np.random.Generator
) -> np.ndarray:
    """`correlate_heads` after permutations of the heads of each layer, [permutation, statistic].

    A permutation moves ranks and does not change their mean and variance, so that only products of
    standardised ranks have to be computed again.
    """
    is_measured = np.isfinite(measure) & np.isfinite(importance)
    first, second = (_standardise_ranks(values[is_measured]) for values in (measure, importance))
    overall, within, start = np.zeros(permutations), [], 0
    for layer, heads in enumerate(is_measured):
        count = int(heads.sum())
        part, start = slice(start, start + count), start + count
        order = random.permuted(np.tile(np.arange(count), (permutations, 1)), axis=1)
        overall += first[part][order] @ second[part]
        if count >= MIN_HEADS:
            own_first = _standardise_ranks(measure[layer, heads])
            own_second = _standardise_ranks(importance[layer, heads])
            within.append(own_first[order] @ own_second)
    within_layers = (
        finite_mean(np.array(within), axis=0) if within else np.full(permutations, np.nan)
    )
    return np.stack([overall, within_layers], axis=1)


def _standardise_ranks(values: np.ndarray) -> np.ndarray:
    """Ranks with mean 0 and a sum of squares of 1; NaN if all are equal."""
    ranks = rankdata(values) if len(values) else values
    centered = ranks - ranks.mean() if len(values) else values
    norm = np.sqrt((centered**2).sum())
    return centered / norm if norm > 0 else np.full(len(values), np.nan)
