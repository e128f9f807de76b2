"""What several seeds say together: a mean, and an interval that admits how few they are."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri, stdtrit

FEWEST = 5
"""Seeds; of fewer, nothing is concluded."""
ERROR = 0.05
"""Share of intervals that may miss the truth."""
ROUNDING = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A mean over seeds with its 95 % interval; NaN where there is none."""

    value: float
    low: float
    high: float
    seeds: int

    def __str__(self) -> str:
        interval = f" ({number(self.low)} … {number(self.high)})" if math.isfinite(self.low) else ""
        return number(self.value) + interval

    def in_percent(self) -> Estimate:
        """The same, times a hundred."""
        return Estimate(value=100 * self.value, low=100 * self.low, high=100 * self.high, seeds=self.seeds)

    def as_json(self) -> dict[str, float | int | None]:
        """Plain values; null where there is no number."""
        found = {"value": self.value, "low": self.low, "high": self.high, "seeds": self.seeds}
        return {key: value if math.isfinite(value) else None for key, value in found.items()}


def over_seeds(values: Iterable[float], *, resolution: float = 0.0) -> Estimate:
    """The mean with its 95 % interval; values that are NaN do not count.

    Student's t, corrected for skewness by Hall's transformation (1992): with five values of a skewed distribution the
    plain one holds the truth in 88 % of cases (exponential). The quantile is taken a little further out, by 1/n of the
    error that is left, because the skewness itself is known from n values only. Simulated coverage is in
    tests/validity/test_intervals.py. Equal values have no interval: nothing in them tells how much they vary. Where
    they are equal because they are known in steps of a `resolution` only, what such rounding hides is added.
    """
    finite = np.array([value for value in values if math.isfinite(value)])
    count = len(finite)
    value = float(finite.mean()) if count else math.nan
    spread = math.sqrt(float(finite.var(ddof=1)) + resolution**2 / 12) if count > 1 else 0.0
    if spread <= ROUNDING * max(1.0, abs(value)):
        return Estimate(value=value, low=math.nan, high=math.nan, seeds=count)
    t = -float(stdtrit(count - 1, ERROR / 2 * (1 - 1 / count))) / math.sqrt(count)
    deviation = float(finite.std())
    skewness = float(((finite - value) ** 3).mean()) / deviation**3 if deviation > 0.1 * resolution else 0.0
    low, high = (value - spread * _untransformed(end, skewness, count) for end in (t, -t))
    return Estimate(value=value, low=low, high=high, seeds=count)


def _untransformed(t: float, skewness: float, count: int) -> float:
    """The studentized mean at which Hall's transformed one, which is nearly symmetric, is `t`."""
    third = skewness / 3
    if abs(third) < 1e-6:
        return t
    return (float(np.cbrt(1 + 3 * third * (t - skewness / (6 * count)))) - 1) / third


def share_over_seeds(counts: Sequence[int], totals: Sequence[int]) -> Estimate:
    """A share with its 95 % interval: so many of so many (heads, say) in every seed.

    Wilson's interval, which is never empty, for as many independent trials as the seeds are worth: where they differ
    more than chance within a seed explains, they are worth fewer (the design effect), and Student's t takes the place
    of the normal distribution.
    """
    pairs = [(count, total) for count, total in zip(counts, totals, strict=True) if total]
    if not pairs:
        return Estimate(value=math.nan, low=math.nan, high=math.nan, seeds=0)
    hits, trials = np.array(pairs, dtype=float).T
    seeds, share = len(pairs), float(hits.sum() / trials.sum())
    within = share * (1 - share) * float((1 / trials).mean())
    between = float((hits / trials).var(ddof=1)) if seeds > 1 else 0.0
    design = max(1.0, between / within) if within else 1.0
    normal, student = -float(ndtri(ERROR / 2)), -float(stdtrit(max(1, seeds - 1), ERROR / 2))
    z = normal + (student - normal) * math.sqrt(1 - 1 / design)
    trials_worth = float(trials.sum()) / design
    scale = 1 + z**2 / trials_worth
    middle = (share + z**2 / (2 * trials_worth)) / scale
    half = z / scale * math.sqrt(share * (1 - share) / trials_worth + z**2 / (4 * trials_worth**2))
    return Estimate(value=share, low=max(0.0, middle - half), high=min(1.0, middle + half), seeds=seeds)


def number(value: float) -> str:
    """Three digits, the minus sign of print; what only rounding made is 0."""
    if not math.isfinite(value):
        return "none"
    value = 0.0 if abs(value) < ROUNDING else value
    text = f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return text.replace("-", "−")
