"""Means over the folds of a cross-validation, with intervals that know that folds share data.

Two of k folds are trained on nearly the same examples, so their scores are not independent, and the
standard error of independent values is too small. Nadeau and Bengio (2003) correct it: the variance
of the mean of n scores is s² (1/n + held-out examples / training examples), here s² (1/n +
1/(k−1)).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence

import numpy as np

from neural.stats.comparisons import (
    SIGNIFICANCE_LEVEL,
    ComparisonVerdict,
    PairedComparison,
    compute_t_tail,
)
from neural.stats.estimate import ROUNDING_TOLERANCE, Estimate

FoldScores = Mapping[Hashable, Mapping[Hashable, float]]
"""Scores by fold, then by the seed of the training."""


def average_seeds(scores: FoldScores) -> dict[Hashable, float]:
    """The mean over seeds for each fold: seeds of one fold are no new data.

    NaN if a seed failed, which is a score of NaN or infinity.
    """
    means = {}
    for fold, by_seed in scores.items():
        if by_seed:
            values = list(by_seed.values())
            means[fold] = float(np.mean(values)) if np.isfinite(values).all() else math.nan
    return means


def compute_standard_error(values: Sequence[float], fold_count: int) -> float:
    """Corrected standard error of the mean over folds; NaN for fewer than two values or a NaN."""
    if len(values) < 2:
        return math.nan
    return float(np.std(values, ddof=1)) * math.sqrt(1 / len(values) + 1 / (fold_count - 1))


def estimate_fold_mean(values: Sequence[float], fold_count: int) -> Estimate:
    """The mean over folds with its corrected 95 % interval.

    There is no interval for fewer than three folds or equal values. NaN, a fold that failed, makes
    the mean NaN.
    """
    count = len(values)
    mean = float(np.mean(values)) if count else math.nan
    error = compute_standard_error(values, fold_count)
    if not error > ROUNDING_TOLERANCE * max(1.0, abs(mean)):
        return Estimate(mean, n=count)
    return Estimate.from_error(mean, error, count - 1, count)


def compare_folds(
    candidates: Sequence[FoldScores],
    baseline: FoldScores,
    fold_count: int,
    *,
    larger_is_better: bool,
) -> list[PairedComparison]:
    """Compare settings with the best of them, by pairs of equal folds and seeds.

    The baseline was selected as the best by the same scores, so p is corrected for all pairs of
    settings (Bonferroni), as in `significance.compare_pairs`. A failed fold leaves a comparison
    undecided.
    """
    setting_count = len(candidates) + 1
    pair_count = setting_count * (setting_count - 1) // 2
    comparisons = []
    for scores in candidates:
        differences = average_seeds(
            {
                fold: {
                    seed: score - baseline[fold][seed]
                    for seed, score in by_seed.items()
                    if seed in baseline[fold]
                }
                for fold, by_seed in scores.items()
                if fold in baseline
            }
        )
        estimate = estimate_fold_mean(list(differences.values()), fold_count)
        error = compute_standard_error(list(differences.values()), fold_count)
        p = math.nan
        if error > ROUNDING_TOLERANCE * max(1.0, abs(estimate.value)):
            tail = compute_t_tail(abs(estimate.value) / error, estimate.n - 1)
            p = min(1.0, pair_count * 2 * float(tail))
        verdict: ComparisonVerdict = "undecided"
        if p <= SIGNIFICANCE_LEVEL:
            verdict = "better" if (estimate.value > 0) == larger_is_better else "worse"
        comparisons.append(PairedComparison(estimate, p, verdict))
    return comparisons
