"""p-values of few paired differences, and Holm's correction for many of them in one report.

    tails = mean_test(differences)      # parametric: useful from about five pairs
    tails = rank_test(differences)      # exact for any symmetric distribution; infinite differences allowed
    adjusted = holm([tails.two_sided for tails in …])

Simulated error rates are in tests/validity/test_focus_reports.py.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtr

from neural.views.correlation import ranks
from neural.views.seeds import ROUNDING, number

LEVEL = 0.05
"""Largest p at which a verdict is given."""


@dataclass(frozen=True, slots=True)
class Tails:
    """One-sided p-values: `above` is small where the values lie above the null, `below` where below.

    NaN where there is no test.
    """

    above: float
    below: float

    @property
    def two_sided(self) -> float:
        """Twice the smaller one, at most 1."""
        smaller = 2 * min(self.above, self.below)
        return smaller if math.isnan(smaller) else min(1.0, smaller)


UNTESTED = Tails(math.nan, math.nan)


def mean_test(values: Iterable[float], null: float = 0.0) -> Tails:
    """Whether the mean lies above or below `null`. NaN where the values are fewer than two or all equal.

    The larger p of two: Student's t, and the inversion of the interval of `over_seeds` (Hall's
    transformation). After a correction for many tests p must be far below .05. There Hall's p is
    too small for symmetric differences (3 times at .0005 with five normal values) and Student's
    for skewed ones. So a verdict never contradicts the interval that is printed beside it.
    """
    finite = np.array([value for value in values if math.isfinite(value)])
    count = len(finite)
    std = float(finite.std(ddof=1)) if count > 1 else 0.0
    mean = float(finite.mean()) if count else math.nan
    if not std > ROUNDING * max(1.0, abs(mean)):
        return UNTESTED
    skewness = float(((finite - mean) ** 3).mean() / finite.std() ** 3)
    effect = (mean - null) / std
    student = math.sqrt(count) * effect
    third = skewness / 3
    hall = math.sqrt(count) * (
        effect + third * effect**2 + third**2 * effect**3 / 3 + skewness / (6 * count)
    )
    # over_seeds takes its quantile at (1 - 1/n) of the error
    widened = 1 - 1 / count
    above, below = (
        min(1.0, max(float(stdtr(count - 1, -side * student)), _tail(count, side * hall) / widened))
        for side in (1, -1)
    )
    return Tails(above, below)


def _tail(count: int, t: float) -> float:
    return float(stdtr(count - 1, -t))


def rank_test(values: Iterable[float], null: float = 0.0) -> Tails:
    """Wilcoxon's signed-rank test, exact also with ties; infinite differences rank last.

    Values equal to the null say nothing and are left out. NaN where none is left.
    """
    centred = np.array([value - null for value in values if not math.isnan(value)])
    centred = centred[centred != 0]
    if not len(centred):
        return UNTESTED
    # doubled, because tied values share a rank that may end in a half
    weights = np.rint(2 * ranks(np.abs(centred))).astype(int)
    counts = np.array([1.0])
    for weight in weights:
        # sums of ranks with a positive sign: each rank is in the sum or not
        longer = np.zeros(len(counts) + weight)
        longer[: len(counts)] += counts / 2
        longer[weight:] += counts / 2
        counts = longer
    positive = int(weights[centred > 0].sum())
    return Tails(float(counts[positive:].sum()), float(counts[: positive + 1].sum()))


def fewest_pairs(tests: int = 1) -> int:
    """Pairs with which `rank_test` can decide at all, corrected for so many tests."""
    return math.ceil(1 - math.log2(LEVEL / max(1, tests)))


def p_text(p: float) -> str:
    """As it is printed: three digits, never 0."""
    return "<0.0001" if p < 1e-4 else number(p)


def holm(p_values: Sequence[float]) -> list[float]:
    """p-values corrected for their number (Holm, 1979). NaN stays NaN and does not count.

    Held to `LEVEL`, the chance of one false verdict or more in the whole report is at most `LEVEL`,
    however the tests depend on each other.
    """
    order = sorted(
        (index for index, p in enumerate(p_values) if not math.isnan(p)), key=lambda i: p_values[i]
    )
    adjusted, largest = [math.nan] * len(p_values), 0.0
    for position, index in enumerate(order):
        largest = max(largest, min(1.0, p_values[index] * (len(order) - position)))
        adjusted[index] = largest
    return adjusted
