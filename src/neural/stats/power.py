"""Power of studies with few seeds, and the optimism of a selected setting.

    find_smallest_effect(seeds)                         the effect that a study of a mean finds
    estimate_correlation_power(seeds, steps, correlation)   chance to find a relation
    estimate_selection_bias(scores)                     optimism of the best of many

An effect is in standard deviations of a score. A study is one experiment with several seeds; power
is the share of studies that find an effect that exists.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from neural.stats.correlation import MIN_SHARED_STEPS, Curve, correlate
from neural.stats.means import MIN_SEEDS, estimate_mean

TARGET_POWER = 0.8
"""Share of studies that find an existing effect; the usual target."""
CORRELATION_SIMULATIONS = 50
"""Simulated studies for the power of `correlate`; few, because it is slow."""
PERMUTATIONS_PER_SIMULATION = 400
"""Permutations in the test of each of these studies."""
MEAN_SIMULATIONS = 4000
"""Simulated studies for the power of an interval of `estimate_mean`."""


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
    from scipy.special import gammaincinv

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
            median_ratio = 2 * float(gammaincinv(degrees / 2, 0.5)) / degrees
            variances.append(float(finite_differences.var(ddof=1)) / 2 / median_ratio)
    noise_std = math.sqrt(float(np.median(variances))) if variances else math.nan
    seed_count = sum(map(math.isfinite, selected.values()))
    return SelectionBias(setting_count=len(scores), seed_count=seed_count, noise_std=noise_std)


def expected_normal_maximum(count: int) -> float:
    """Expected maximum of `count` standard normal values."""
    from scipy.special import ndtr

    # E[max] = ∫ (1[x > 0] − F(x)) dx, with the distribution function F of the maximum
    x = np.linspace(-10, 10, 4001)
    maximum_cdf = ndtr(x) ** count
    return float(np.trapezoid(np.heaviside(x, 0.5) - maximum_cdf, x))
