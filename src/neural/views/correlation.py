"""Whether two series that both change while a model learns have to do with each other, over several seeds.

Everything correlates with the step, so any two measures of a training correlate with each other. Four numbers keep
that apart, each a Spearman correlation, found for every seed and averaged:

    raw           of the values: what a shared trend alone makes large
    differences   of the changes from one step to the next: a trend of one slope is gone
    partial       of the values, with the ranks of the steps held fixed: any monotone trend is gone
    own           differences, minus what the differences of one seed and those of *another* seed give: whatever all
                  seeds share (the trend, the schedule, the order in which things are learned) is gone

The p-value asks the same as `own`: the seeds' second series are dealt out to their first ones in every possible way
(where these are more than `permutations`, in so many random ways), and p is the share of deals whose mean is at least
as far from the middle as the true one's. Intervals are over seeds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import permutations as all_permutations
from typing import Literal

import numpy as np

from neural.views.seeds import FEWEST, Estimate, number, over_seeds

PERMUTATIONS = 10_000
FEWEST_STEPS = 6
"""That two series must share."""
LEVEL = 0.05
SMALL = 0.3
"""A correlation below explains less than a tenth of the variance."""
FLAT = 1e-6
"""Changes that differ by less than this share of the values are rounding."""

Verdict = Literal["related", "unrelated", "undecided", "too few"]


@dataclass(frozen=True, eq=False)
class Curve:
    """A series of one seed: values at steps, each step once."""

    steps: np.ndarray
    values: np.ndarray


@dataclass(frozen=True, slots=True, kw_only=True)
class Correlation:
    """What came out, and what it means."""

    verdict: Verdict
    raw: Estimate
    differences: Estimate
    partial: Estimate
    own: Estimate
    p: float
    permutations: int
    """Deals that p was counted in."""
    left_out: tuple[str, ...]
    """Why seeds do not count, one line each."""

    @property
    def seeds(self) -> int:
        """That count."""
        return self.differences.seeds

    def __str__(self) -> str:
        said = {
            "related": "related beyond the shared trend",
            "unrelated": "not related beyond the shared trend",
            "undecided": "undecided",
            "too few": f"too few seeds ({self.seeds}; at least {FEWEST})",
        }[self.verdict]
        tested = f", p {number(self.p)} in {self.permutations:,} permutations" if math.isfinite(self.p) else ""
        numbers = f"raw {self.raw}, of differences {self.differences}, partial on the step {self.partial}"
        out = f"; left out: {'; '.join(self.left_out)}" if self.left_out else ""
        return f"{said}: {numbers}, beyond other seeds {self.own}{tested}{out}"


def correlate(
    seeds: Sequence[tuple[Curve, Curve]], *, permutations: int = PERMUTATIONS, seed: int = 0
) -> Correlation:
    """Two curves of every seed, which may have different steps: those that both have count, where both are finite."""
    kept, left_out = [], []
    for index, pair in enumerate(seeds):
        why = _useless(*pair)
        if why:
            left_out.append(f"seed {index + 1} of {len(seeds)}, {why}")
        else:
            kept.append(pair)
    matrix = np.empty((len(kept), len(kept)))
    for i, (one, _) in enumerate(kept):
        for j, (_, other) in enumerate(kept):
            matrix[i, j] = _of(differences, one, other)
    p, deals = permutation_p(matrix, permutations=permutations, seed=seed)
    estimates = {
        "raw": over_seeds(_of(lambda steps, one, other: spearman(one, other), *pair) for pair in kept),
        "partial": over_seeds(_of(partial, *pair) for pair in kept),
        "differences": over_seeds(np.diag(matrix)),
        "own": over_seeds(_beyond_others(matrix)),
    }
    verdict = verdict_of(len(kept), estimates["own"], p)
    return Correlation(verdict=verdict, **estimates, p=p, permutations=deals, left_out=tuple(left_out))


def spearman(one: np.ndarray, other: np.ndarray) -> float:
    """The correlation of ranks, −1 to 1; NaN where one of them is constant."""
    return _pearson(ranks(one), ranks(other))


def ranks(values: np.ndarray) -> np.ndarray:
    """From 1; equal values share the mean of their places."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (counts.cumsum() - (counts - 1) / 2)[place]


def differences(steps: np.ndarray, one: np.ndarray, other: np.ndarray) -> float:
    """Spearman of the changes from each step to the next."""
    changes = np.diff(one), np.diff(other)
    if any(np.ptp(change) <= FLAT * np.abs(values).max() for change, values in zip(changes, (one, other), strict=True)):
        return math.nan
    return spearman(*changes)


def partial(steps: np.ndarray, one: np.ndarray, other: np.ndarray) -> float:
    """Spearman with the steps held fixed; NaN where one of them follows the steps exactly."""
    both, first, second = spearman(one, other), spearman(one, steps), spearman(other, steps)
    rest = (1 - first**2) * (1 - second**2)
    return (both - first * second) / math.sqrt(rest) if rest > 1e-12 else math.nan


def permutation_p(matrix: np.ndarray, *, permutations: int, seed: int) -> tuple[float, int]:
    """The share of deals as extreme as the diagonal, and how many deals there were; all of them where they are few."""
    count = len(matrix)
    if count < 2 or np.isnan(matrix).any():
        return math.nan, 0
    every = math.factorial(count) <= permutations
    if every:
        deals = np.array(list(all_permutations(range(count))))
    else:
        deals = np.random.default_rng(seed).permuted(np.tile(np.arange(count), (permutations, 1)), axis=1)
    means = matrix[np.arange(count), deals].mean(axis=1)
    middle = matrix.mean()   # what a deal gives on average
    extreme = int((abs(means - middle) >= abs(np.diag(matrix).mean() - middle) - 1e-12).sum())
    return (extreme / len(deals) if every else (extreme + 1) / (len(deals) + 1)), len(deals)


def _useless(one: Curve, other: Curve) -> str:
    steps, first, second = shared(one, other)
    if len(steps) < FEWEST_STEPS:
        return f"{len(steps)} steps in common (at least {FEWEST_STEPS})"
    return "a series without change" if math.isnan(differences(steps, first, second)) else ""


def shared(one: Curve, other: Curve) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Steps that both have, and the values there; rows that are not finite are left out."""
    steps, here, there = np.intersect1d(one.steps, other.steps, return_indices=True)
    first, second = np.asarray(one.values, float)[here], np.asarray(other.values, float)[there]
    finite = np.isfinite(first) & np.isfinite(second)
    return steps[finite], first[finite], second[finite]


def _of(statistic: Callable[[np.ndarray, np.ndarray, np.ndarray], float], one: Curve, other: Curve) -> float:
    steps, first, second = shared(one, other)
    return statistic(steps, first, second) if len(steps) >= FEWEST_STEPS else math.nan


def _pearson(one: np.ndarray, other: np.ndarray) -> float:
    one, other = one - one.mean(), other - other.mean()
    lengths = math.sqrt((one**2).sum() * (other**2).sum())
    return float((one * other).sum() / lengths) if lengths else math.nan


def _beyond_others(matrix: np.ndarray) -> list[float]:
    """Of every seed: its own correlation minus the mean of those of one of its series with another seed's."""
    count = len(matrix)
    if count < 2:
        return []
    own = np.diag(matrix)
    others = (matrix.sum(axis=0) + matrix.sum(axis=1) - 2 * own) / (2 * (count - 1))
    return list(own - others)


def verdict_of(seeds: int, own: Estimate, p: float) -> Verdict:
    """p and the interval must agree; where they do not, or cannot be had, nothing is decided."""
    if seeds < FEWEST:
        return "too few"
    if math.isnan(p):
        return "undecided"
    if p <= LEVEL and not own.low <= 0 <= own.high:
        return "related"
    return "unrelated" if p > LEVEL and own.low > -SMALL and own.high < SMALL else "undecided"
