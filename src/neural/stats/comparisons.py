"""Statistics for few seeds: paired tests, multiple comparisons, power and selection bias.

    compare_pairs(candidates, baseline, larger_is_better=…)     settings against a baseline
    tails = mean_test(differences)      t test, corrected for skewness; from about five pairs
    tails = rank_test(differences)      exact for any symmetric distribution; infinities allowed
    adjust_p_values([tails.two_sided for tails in …])           Holm's correction
    estimate_mean_power(seeds, effect)                          chance to find an effect
    estimate_selection_bias(scores)                             optimism of the best of many

A setting is one configuration, trained with several random seeds; it has one score per seed. Scores
of the same seed are paired. An effect is a mean difference. A study is one experiment with several
seeds; power is the share of studies that find an effect that exists. Error rates are simulated in
tests/validity/.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np

from neural.core.ranks import rank_values
from neural.core.statistical_distributions import gamma_quantile, normal_cdf, student_t_cdf
from neural.stats.correlation import MIN_SHARED_STEPS, Curve, correlate
from neural.stats.means import (
    MIN_SEEDS,
    ROUNDING_TOLERANCE,
    SeedEstimate,
    estimate_mean,
    format_number,
)

ComparisonVerdict = Literal["better", "worse", "undecided"]
SeedScores = Mapping[Hashable, float]
"""Score by seed. NaN and infinities mean that the training with this seed failed."""
SIGNIFICANCE_LEVEL = 0.05
"""Largest corrected p-value with which a verdict is "better" or "worse"."""
TARGET_POWER = 0.8
"""Share of studies that find an existing effect; the usual target."""
CORRELATION_SIMULATIONS = 50
"""Simulated studies for the power of `correlate`; few, because it is slow."""
PERMUTATIONS_PER_SIMULATION = 400
"""Permutations in the test of each of these studies."""
MEAN_SIMULATIONS = 4000
"""Simulated studies for the power of an interval of `estimate_mean`."""


class PairedComparison(NamedTuple):
    """Comparison of a setting with the baseline."""

    difference: SeedEstimate
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


def decide_verdict(difference: SeedEstimate, *, larger_is_better: bool) -> ComparisonVerdict:
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


def estimate_mean_power(seeds: int, effect: float) -> float:
    """Share of studies in which the interval of the mean lies above 0, for a true mean of `effect`.

    `effect` is in standard deviations of a score. 0 for fewer than MIN_SEEDS seeds, which give no
    verdict.
    """
    return (
        float((_simulate_lower_bounds(seeds) > -abs(effect)).mean()) if seeds >= MIN_SEEDS else 0.0
    )


def find_smallest_effect(seeds: int, power: float = TARGET_POWER) -> float:
    """The effect, in standard deviations of a score, that a study finds with probability `power`.

    NaN for fewer than MIN_SEEDS seeds, which give no verdict.
    """
    return (
        -float(np.quantile(_simulate_lower_bounds(seeds), 1 - power))
        if seeds >= MIN_SEEDS
        else math.nan
    )


@lru_cache
def _simulate_lower_bounds(seeds: int) -> np.ndarray:
    """Lower bounds of the intervals of MEAN_SIMULATIONS studies with standard normal scores.

    The true mean of these scores is 0. A true mean of `effect` would shift all bounds by `effect`.
    """
    random = np.random.default_rng(seeds)
    return np.array(
        [estimate_mean(values).low for values in random.standard_normal((MEAN_SIMULATIONS, seeds))]
    )


def estimate_correlation_power(
    seeds: int,
    steps: int,
    correlation: float,
    *,
    simulations: int = CORRELATION_SIMULATIONS,
    seed: int = 0,
) -> float:
    """Share of simulated studies in which `correlate` finds two measures related.

    The two measures of a seed are random walks around a trend that all seeds share. The steps of
    the two walks have the given correlation. There is no measurement noise; with noise the power
    is lower.
    """
    if seeds < MIN_SEEDS or steps < MIN_SHARED_STEPS:
        return 0.0
    random = np.random.default_rng(seed)
    step = np.arange(steps)
    trend = np.exp(-step / max(1.0, steps / 5)) * math.sqrt(steps)
    related_count = 0
    for _ in range(simulations):
        first, independent = random.standard_normal((2, seeds, steps))
        second = correlation * first + math.sqrt(1 - correlation**2) * independent
        pairs = [
            (Curve(step, trend + a.cumsum()), Curve(step, trend + b.cumsum()))
            for a, b in zip(first, second, strict=True)
        ]
        related_count += (
            correlate(pairs, permutations=PERMUTATIONS_PER_SIMULATION).verdict == "related"
        )
    return related_count / simulations


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectionBias:
    """How much the mean of the best of several settings is too good, because it was selected."""

    setting_count: int
    seed_count: int
    """Number of seeds of the selected setting with a score."""
    noise_std: float
    """Standard deviation of a score, without what a seed adds to all settings; NaN for one seed."""

    @property
    def optimism(self) -> float:
        """Expected excess of the best mean over its true value if all settings are equally good."""
        return self.noise_std * self.optimism_in_std

    @property
    def optimism_in_std(self) -> float:
        """The optimism in units of `noise_std`: 0.94 for 12 settings with 3 seeds."""
        return expected_normal_maximum(self.setting_count) / math.sqrt(self.seed_count)


def estimate_selection_bias(scores: Sequence[Mapping[Hashable, float]]) -> SelectionBias:
    """Estimate the selection bias. `scores` are those of every setting, the selected one first.

    The noise is estimated from the differences, paired by seed, between the selected setting and
    each other one: their variance is twice that of a score. The median over the other settings is
    used, because some settings vary far more than those near the best.
    """
    selected = scores[0]
    variances = []
    for other in scores[1:]:
        differences = [other[seed] - selected[seed] for seed in other if seed in selected]
        finite_differences = np.array(
            [difference for difference in differences if math.isfinite(difference)]
        )
        if len(finite_differences) > 1:
            degrees = len(finite_differences) - 1
            # the median of sample variances lies below the true variance (they are χ² distributed)
            median_ratio = 2 * gamma_quantile(degrees / 2, 0.5) / degrees
            variances.append(float(finite_differences.var(ddof=1)) / 2 / median_ratio)
    noise_std = math.sqrt(float(np.median(variances))) if variances else math.nan
    seed_count = sum(map(math.isfinite, selected.values()))
    return SelectionBias(setting_count=len(scores), seed_count=seed_count, noise_std=noise_std)


def expected_normal_maximum(count: int) -> float:
    """Expected maximum of `count` standard normal values."""
    # E[max] = ∫ (1[x > 0] − F(x)) dx, with the distribution function F of the maximum
    x = np.linspace(-10, 10, 4001)
    maximum_cdf = np.array([normal_cdf(value) for value in x.tolist()]) ** count
    return float(np.trapezoid(np.heaviside(x, 0.5) - maximum_cdf, x))


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
                student_t_cdf(count - 1, -side * student),
                _upper_tail(count, side * hall) / error_share,
            ),
        )
        for side in (1, -1)
    )
    return OneSidedPValues(above, below)


def _upper_tail(count: int, t: float) -> float:
    """Probability that Student's t of `count` values exceeds `t`."""
    return student_t_cdf(count - 1, -t)


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
