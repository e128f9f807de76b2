"""Paired comparisons of few seeds, tests, and corrections for many of them.

    compare_pairs(candidates, baseline, larger_is_better=…)     settings against a baseline
    tails = mean_test(differences)      t test, corrected for skewness; from about five pairs
    tails = rank_test(differences)      exact for any symmetric distribution; infinities allowed
    adjust_p_values([tails.two_sided for tails in …])           Holm's correction

A setting is one configuration, trained with several random seeds; it has one score per seed. Scores
of the same seed are paired. Error rates are simulated in tests/validity/.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from neural.stats.correlation import rank_values
from neural.stats.estimate import MIN_INTERVAL_VALUES, ROUNDING_TOLERANCE, Estimate, format_number
from neural.stats.means import estimate_mean

ComparisonVerdict = Literal["better", "worse", "undecided"]
SeedScores = Mapping[Hashable, float]
"""Score by seed. NaN and infinities mean that the training with this seed failed."""
SIGNIFICANCE_LEVEL = 0.05
"""Largest corrected p-value with which a verdict is "better" or "worse"."""


class PairedComparison(NamedTuple):
    """Comparison of a setting with the baseline."""

    difference: Estimate
    """Score − baseline, with its own 95 % interval; infinite or NaN if a seed failed."""
    p: float
    """Two-sided p-value, corrected for the number of comparisons; NaN without a test."""
    verdict: ComparisonVerdict


def compare_pairs(
    candidates: Sequence[SeedScores],
    baseline: SeedScores,
    *,
    larger_is_better: bool,
    is_selected: bool = False,
) -> list[PairedComparison]:
    """Compare every candidate with the baseline: better or worse if p ≤ .05 after correction.

    The correction is Holm's for the number of candidates. `is_selected` says that the baseline was
    chosen as the best setting by the same scores. Then any pair of settings could have been
    compared, and the correction is Bonferroni's for all pairs. In simulations with 12 equally good
    settings and 3 seeds, some setting is falsely "worse" in 44 % of cases without this correction
    and in 2 % with it (tests/validity/test_sweep_selection.py).

    A failed seed is worse than any other, and equal to another failed one. Its difference is
    infinite, so the test is then that of ranks.
    """
    differences = [
        _paired_differences(scores, baseline, larger_is_better=larger_is_better)
        for scores in candidates
    ]
    tests = [
        (mean_test if all(map(math.isfinite, values)) else rank_test)(values)
        for values in differences
    ]
    p_values = [tails.two_sided for tails in tests]
    if is_selected:
        setting_count = len(candidates) + 1
        pair_count = setting_count * (setting_count - 1) // 2
        adjusted = [p if math.isnan(p) else min(1.0, pair_count * p) for p in p_values]
    else:
        adjusted = adjust_p_values(p_values)
    comparisons = []
    for values, tails, p in zip(differences, tests, adjusted, strict=True):
        verdict: ComparisonVerdict = "undecided"
        if p <= SIGNIFICANCE_LEVEL:
            verdict = "better" if (tails.above < tails.below) == larger_is_better else "worse"
        comparisons.append(PairedComparison(estimate_mean(values), p, verdict))
    return comparisons


def decide_verdict(difference: Estimate, *, larger_is_better: bool) -> ComparisonVerdict:
    """Better or worse than the baseline; undecided if the interval contains 0 or is missing."""
    if not (difference.low > 0 or difference.high < 0):
        return "undecided"
    return "better" if (difference.value > 0) == larger_is_better else "worse"


def _paired_differences(
    scores: SeedScores, baseline: SeedScores, *, larger_is_better: bool
) -> list[float]:
    """Score − baseline by shared seed: infinite where one of them failed, 0 where both did."""
    worst = -math.inf if larger_is_better else math.inf
    pairs = [
        [value if math.isfinite(value) else worst for value in (scores[seed], baseline[seed])]
        for seed in scores
        if seed in baseline
    ]
    return [0.0 if score == other else score - other for score, other in pairs]


@dataclass(frozen=True, slots=True)
class OneSidedPValues:
    """One-sided p-values of a test against a null value; NaN without a test.

    `above` is small if the values lie above the null value, `below` if they lie below.
    """

    above: float
    below: float

    @property
    def two_sided(self) -> float:
        """Twice the smaller one, at most 1."""
        p = 2 * min(self.above, self.below)
        return p if math.isnan(p) else min(1.0, p)


NO_TEST = OneSidedPValues(math.nan, math.nan)


def mean_test(values: Iterable[float], null: float = 0.0) -> OneSidedPValues:
    """Test whether the mean lies above or below `null`; NaN for fewer than two or equal values.

    NaN is ignored. Infinite values have no finite mean, so there is no test; `rank_test` has one.

    Each p-value is the larger one of two tests: Student's t test, and the test that belongs to the
    interval of `estimate_mean` (t with Hall's correction for skewness). With a correction for many
    tests, p must be far below .05. There Hall's p is too small for symmetric values (with five
    normal values, p ≤ .0005 occurs three times too often), and Student's for skewed ones. Because
    of the second test, a verdict never contradicts the interval that is printed beside it.
    """
    finite = np.array([value for value in values if not math.isnan(value)])
    count = len(finite)
    if not np.isfinite(finite).all():
        return NO_TEST
    std = float(finite.std(ddof=1)) if count > 1 else 0.0
    mean = float(finite.mean()) if count else math.nan
    if not std > ROUNDING_TOLERANCE * max(1.0, abs(mean)):
        return NO_TEST
    skewness = float(((finite - mean) ** 3).mean() / finite.std() ** 3)
    effect = (mean - null) / std
    student = math.sqrt(count) * effect
    third_of_skewness = skewness / 3
    hall = math.sqrt(count) * (
        effect
        + third_of_skewness * effect**2
        + third_of_skewness**2 * effect**3 / 3
        + skewness / (6 * count)
    )
    # estimate_mean uses the t quantile of (1 − 1/n) times the error rate; this inverts it
    error_share = 1 - 1 / count
    above, below = (
        min(
            1.0,
            max(
                float(compute_t_tail(side * student, count - 1)),
                float(compute_t_tail(side * hall, count - 1)) / error_share,
            ),
        )
        for side in (1, -1)
    )
    return OneSidedPValues(above, below)


def compute_t_tail(t: npt.ArrayLike, degrees: float) -> np.ndarray:
    """Probability that Student's t with these degrees of freedom exceeds each `t`."""
    from scipy.special import stdtr

    return stdtr(degrees, -np.asarray(t, dtype=float))


def rank_test(values: Iterable[float], null: float = 0.0) -> OneSidedPValues:
    """Wilcoxon's signed-rank test, exact also with ties; infinite values have the largest ranks.

    Values equal to `null` are excluded. NaN if none is left.
    """
    centred = np.array([value - null for value in values if not math.isnan(value)])
    centred = centred[centred != 0]
    if not len(centred):
        return NO_TEST
    # doubled, so that the mean ranks of ties are integers
    ranks = np.rint(2 * rank_values(np.abs(centred))).astype(int)
    # distribution of the sum of positive ranks: each rank is in the sum with probability 1/2
    probabilities = np.array([1.0])
    for rank in ranks:
        extended = np.zeros(len(probabilities) + rank)
        extended[: len(probabilities)] += probabilities / 2
        extended[rank:] += probabilities / 2
        probabilities = extended
    positive_sum = int(ranks[centred > 0].sum())
    return OneSidedPValues(
        float(probabilities[positive_sum:].sum()), float(probabilities[: positive_sum + 1].sum())
    )


def min_deciding_pairs(test_count: int = 1) -> int:
    """Fewest pairs with which `rank_test` can be significant, corrected for `test_count` tests."""
    # the smallest two-sided p of n pairs is 2 / 2ⁿ
    return math.ceil(1 - math.log2(SIGNIFICANCE_LEVEL / max(1, test_count)))


def format_p_value(p: float) -> str:
    """Format with three significant digits; "<0.0001" for smaller values, never 0."""
    return "<0.0001" if p < 1e-4 else format_number(p)


def adjust_p_values(p_values: Sequence[float]) -> list[float]:
    """p-values corrected for their number (Holm, 1979); NaN stays NaN and is not counted.

    If verdicts need a corrected p of at most `SIGNIFICANCE_LEVEL`, the probability of any false
    verdict among all tests is at most that level, however the tests depend on each other.
    """
    order = sorted(
        (index for index, p in enumerate(p_values) if not math.isnan(p)), key=lambda i: p_values[i]
    )
    adjusted, largest = [math.nan] * len(p_values), 0.0
    for position, index in enumerate(order):
        largest = max(largest, min(1.0, p_values[index] * (len(order) - position)))
        adjusted[index] = largest
    return adjusted


def format_comparison(estimate: Estimate, verdict: str) -> str:
    """A difference over pairs of seeds as a cell: `worse +0.12 (+0.03 … +0.21)`.

    It is infinite or NaN if a seed failed; the verdict is then by ranks.
    """
    if estimate.n and not math.isfinite(estimate.value):
        return f"{verdict}, seeds failed"
    if estimate.n < 2:
        return f"{verdict} ({estimate.n or 'no'} shared seed)"
    difference = f"{verdict} {estimate.format(signed=True)}"
    if estimate.n < MIN_INTERVAL_VALUES:
        return f"{difference} ({estimate.n} shared seeds)"
    # all differences are equal if there is no interval
    return difference if estimate.has_interval else f"{difference} in each of {estimate.n} seeds"
