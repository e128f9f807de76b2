"""Means and shares over few seeds, with 95 % confidence intervals.

A seed stands for one training; the trainings that are averaged differ only by their random seed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from neural.core.statistical_distributions import normal_quantile, student_t_quantile

MIN_SEEDS = 5
"""With fewer seeds, the analyses report "undecided"."""
MIN_INTERVAL_SEEDS = 3
"""Scores of fewer seeds have no interval: that of two is 25 times as wide as their distance."""
SHARE_METRICS = ("accuracy", "confidence", "f1", "precision", "recall", "saif")
"""Metrics from 0 to 1, by the ends of their names."""
POSITIVE_METRICS = ("bits", "loss", "mae", "perplexity")
"""Metrics of the package's tasks that are never negative, by the ends of their names."""
INTERVAL_ALPHA = 0.05
"""Share of intervals that may miss the true value: 1 minus the confidence level."""
ROUNDING_TOLERANCE = 1e-12
"""A smaller standard deviation, relative to the mean, or a smaller number is a rounding error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedEstimate:
    """A mean or share over seeds with its 95 % confidence interval."""

    value: float
    """NaN without seeds; infinite if a seed is."""
    low: float
    """Lower bound; NaN if there is no interval."""
    high: float
    """Upper bound; NaN if there is no interval."""
    seeds: int
    """Number of seeds with a finite value."""

    def __str__(self) -> str:
        interval = (
            f" ({format_number(self.low)} … {format_number(self.high)})"
            if math.isfinite(self.low)
            else ""
        )
        return format_number(self.value) + interval

    def to_score(self, metric: str) -> SeedEstimate:
        """With the interval as the mean of a score: inside the metric's bounds, if seeds suffice.

        The true mean is inside the bounds, too, so that no coverage is lost.
        """
        if self.seeds < MIN_INTERVAL_SEEDS:
            return replace(self, low=math.nan, high=math.nan)
        is_share = metric.endswith(SHARE_METRICS)
        least = 0.0 if is_share or metric.endswith(POSITIVE_METRICS) else -math.inf
        most = 1.0 if is_share else math.inf
        if not least <= self.value <= most:  # another metric of that name
            return self
        low, high = (float(np.clip(end, least, most)) for end in (self.low, self.high))
        return replace(self, low=low, high=high)

    def to_percent(self) -> SeedEstimate:
        """Value and interval times 100."""
        return SeedEstimate(
            value=100 * self.value, low=100 * self.low, high=100 * self.high, seeds=self.seeds
        )

    def to_dict(self) -> dict[str, float | int | None]:
        """JSON data; NaN becomes None."""
        fields = {"value": self.value, "low": self.low, "high": self.high, "seeds": self.seeds}
        return {key: value if math.isfinite(value) else None for key, value in fields.items()}


def estimate_mean(values: Iterable[float], *, resolution: float = 0.0) -> SeedEstimate:
    """The mean with its 95 % interval; NaN values are ignored, infinite ones are not.

    A mean with an infinite value, such as the score of a diverged training, has no interval.

    The interval is Student's t interval, corrected for skewness by Hall's transformation (1992).
    Without the correction, the interval of five exponentially distributed values contains the true
    mean in 88 % of cases only. The t quantile is that of the error rate 0.05 · (1 − 1/n), because
    the skewness itself is estimated from n values. tests/validity/test_intervals.py simulates how
    often intervals contain the true mean.

    Equal values have no interval: they do not show how much they vary. If the values are rounded to
    multiples of `resolution`, the variance of that rounding (resolution² / 12) is added.
    """
    known = np.array([value for value in values if not math.isnan(value)])
    finite = known[np.isfinite(known)]
    count = len(finite)
    if count < len(known):
        with np.errstate(invalid="ignore"):  # +inf and −inf have no mean
            value = float(known.mean())
        return SeedEstimate(value=value, low=math.nan, high=math.nan, seeds=count)
    value = float(finite.mean()) if count else math.nan
    std = math.sqrt(float(finite.var(ddof=1)) + resolution**2 / 12) if count > 1 else 0.0
    if std <= ROUNDING_TOLERANCE * max(1.0, abs(value)):
        return SeedEstimate(value=value, low=math.nan, high=math.nan, seeds=count)
    t = -student_t_quantile(count - 1, INTERVAL_ALPHA / 2 * (1 - 1 / count)) / math.sqrt(count)
    population_std = float(finite.std())
    skewness = (
        float(((finite - value) ** 3).mean()) / population_std**3
        if population_std > 0.1 * resolution  # the skewness of nearly equal values is rounding
        else 0.0
    )
    low, high = (value - std * _invert_hall_transform(end, skewness, count) for end in (t, -t))
    return SeedEstimate(value=value, low=low, high=high, seeds=count)


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


def estimate_share(counts: Sequence[int], totals: Sequence[int]) -> SeedEstimate:
    """A share with its 95 % interval: `counts[i]` of `totals[i]` (heads, for example) in seed i.

    This is Wilson's interval, which has a positive width also for shares of 0 and 1. It is computed
    for the effective number of independent trials. Where the shares of seeds differ by more than
    binomial sampling explains (design effect above 1), that number is below the sum of `totals`,
    and the quantile moves from that of the normal distribution towards that of Student's t.

    One seed has no interval: its heads share one training, so they do not show how seeds differ.
    """
    pairs = [(count, total) for count, total in zip(counts, totals, strict=True) if total]
    if not pairs:
        return SeedEstimate(value=math.nan, low=math.nan, high=math.nan, seeds=0)
    hits, trials = np.array(pairs, dtype=float).T
    seeds, share = len(pairs), float(hits.sum() / trials.sum())
    if seeds == 1:
        return SeedEstimate(value=share, low=math.nan, high=math.nan, seeds=1)
    variance_within = share * (1 - share) * float((1 / trials).mean())
    variance_between = float((hits / trials).var(ddof=1))
    design_effect = max(1.0, variance_between / variance_within) if variance_within else 1.0
    normal = -normal_quantile(INTERVAL_ALPHA / 2)
    student = -student_t_quantile(seeds - 1, INTERVAL_ALPHA / 2)
    z = normal + (student - normal) * math.sqrt(1 - 1 / design_effect)
    effective_trials = float(trials.sum()) / design_effect
    scale = 1 + z**2 / effective_trials
    center = (share + z**2 / (2 * effective_trials)) / scale
    half_width = (
        z
        / scale
        * math.sqrt(share * (1 - share) / effective_trials + z**2 / (4 * effective_trials**2))
    )
    return SeedEstimate(
        value=share,
        # the ends of a share of 0 or 1 are exact, but for rounding
        low=max(0.0, center - half_width) if share > 0 else 0.0,
        high=min(1.0, center + half_width) if share < 1 else 1.0,
        seeds=seeds,
    )


def format_number(value: float) -> str:
    """Format with three significant digits and a typographic minus sign.

    Numbers below ROUNDING_TOLERANCE become 0; NaN and infinities become "none".
    """
    if not math.isfinite(value):
        return "none"
    value = 0.0 if abs(value) < ROUNDING_TOLERANCE else value
    text = f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return text.replace("-", "−")
