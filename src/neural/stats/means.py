"""Means and shares over few seeds, with 95 % confidence intervals.

A seed stands for one training; the trainings that are averaged differ only by their random seed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from neural.stats.estimate import ERROR_RATE, MIN_INTERVAL_VALUES, ROUNDING_TOLERANCE, Estimate

MIN_SEEDS = 5
"""With fewer seeds, the analyses report "undecided"."""


def estimate_mean(values: Iterable[float], *, resolution: float = 0.0) -> Estimate:
    """The mean with its 95 % interval; NaN values are ignored, infinite ones are not.

    A mean with an infinite value, such as the score of a diverged training, has no interval.

    The interval is Student's t interval, corrected for skewness by Hall's transformation (1992).
    Without the correction, the interval of five exponentially distributed values contains the true
    mean in 88 % of cases only. The t quantile is that of the error rate 0.05 · (1 − 1/n), because
    the skewness itself is estimated from n values. tests/validity/test_intervals.py simulates how
    often intervals contain the true mean.

    Fewer than MIN_INTERVAL_VALUES values have no interval, nor have equal ones: they do not show
    how much they vary. If the values are rounded to multiples of `resolution`, the variance of that
    rounding (resolution² / 12) is added.
    """
    known = np.array([value for value in values if not math.isnan(value)])
    finite = known[np.isfinite(known)]
    count = len(finite)
    if count < len(known):
        with np.errstate(invalid="ignore"):  # +inf and −inf have no mean
            value = float(known.mean())
        return Estimate(value, n=count)
    value = float(finite.mean()) if count else math.nan
    std = math.sqrt(float(finite.var(ddof=1)) + resolution**2 / 12) if count > 1 else 0.0
    if count < MIN_INTERVAL_VALUES or std <= ROUNDING_TOLERANCE * max(1.0, abs(value)):
        return Estimate(value, n=count)
    from scipy.special import stdtrit

    t = -float(stdtrit(count - 1, ERROR_RATE / 2 * (1 - 1 / count))) / math.sqrt(count)
    population_std = float(finite.std())
    skewness = (
        float(((finite - value) ** 3).mean()) / population_std**3
        if population_std > 0.1 * resolution  # the skewness of nearly equal values is rounding
        else 0.0
    )
    low, high = (value - std * _invert_hall_transform(end, skewness, count) for end in (t, -t))
    return Estimate(value, low, high, count)


def _invert_hall_transform(t: float, skewness: float, count: int) -> float:
    """The studentized mean whose Hall transform equals `t`; `count` is the number of values.

    Hall's cubic transform makes the distribution of a studentized mean nearly symmetric.
    """
    third_of_skewness = skewness / 3
    if abs(third_of_skewness) < 1e-6:
        return t
    return (
        float(np.cbrt(1 + 3 * third_of_skewness * (t - skewness / (6 * count)))) - 1
    ) / third_of_skewness


def estimate_share(counts: Sequence[int], totals: Sequence[int]) -> Estimate:
    """A share with its 95 % interval: `counts[i]` of `totals[i]` (heads, for example) in seed i.

    This is Wilson's interval, which has a positive width also for shares of 0 and 1. Where the
    shares of seeds differ by more than binomial sampling explains, the design effect is above 1.
    """
    pairs = [(count, total) for count, total in zip(counts, totals, strict=True) if total]
    if not pairs:
        return Estimate(math.nan)
    hits, trials = np.array(pairs, dtype=float).T
    seeds, share = len(pairs), float(hits.sum() / trials.sum())
    if seeds < MIN_INTERVAL_VALUES:
        return Estimate(share, n=seeds)
    variance_within = share * (1 - share) * float((1 / trials).mean())
    variance_between = float((hits / trials).var(ddof=1))
    effect = max(1.0, variance_between / variance_within) if variance_within else 1.0
    low, high = compute_wilson_interval(
        *np.array([[share], [trials.sum()], [effect], [seeds - 1]], dtype=float)
    )
    return Estimate(share, float(low[0]), float(high[0]), seeds)


def compute_wilson_interval(
    shares: np.ndarray, trials: np.ndarray, effects: np.ndarray, degrees: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper ends of Wilson's intervals (1927) of shares, (n,) each.

    `effects` are design effects, at least 1: the effective number of independent trials is lower
    by that factor. The quantile is that of the normal distribution for a design effect of 1 (a
    binomial variance is known) and approaches that of Student's t, of `degrees`, as the effect
    grows (it is estimated).
    """
    from scipy.special import ndtri, stdtrit

    normal, student = -ndtri(ERROR_RATE / 2), -stdtrit(degrees, ERROR_RATE / 2)
    z = normal + (student - normal) * np.sqrt(1 - 1 / effects)
    count = trials / effects
    scale = 1 + z * z / count
    centre = (shares + z * z / (2 * count)) / scale
    half_width = z * np.sqrt(shares * (1 - shares) / count + z * z / (4 * count**2)) / scale
    return (centre - half_width).clip(0, shares), (centre + half_width).clip(shares, 1)


def bound_rate(mean: float, count: int, level: float) -> float:
    """Lower bound of the rate of an exponential distribution, from the mean of `count` values.

    The true rate is below it with the probability `level`.
    """
    from scipy.special import gammaincinv

    return float(gammaincinv(count, level)) / (count * mean)
