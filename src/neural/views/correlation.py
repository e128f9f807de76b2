"""Whether two series that both change while a model learns have to do with each other, over several seeds.

Everything correlates with the step, so any two measures of a training correlate with each other. What all seeds share
(the trend, the schedule, the order in which things are learned) is therefore taken out, in two ways, each a Spearman
correlation, found for every seed and averaged:

    changes   of the changes from one step to the next, minus what the changes of one seed and those of *another* seed
              give. Sees quick relations; measurement noise hides slow ones.
    levels    of the distances from the mean of all seeds at the same step. Sees slow relations.

For each, p asks whether a seed's own two series go together better than series of different seeds: the seeds' second
series are dealt out to their first ones in every possible way (where these are more than `permutations`, in so many
random ways), and p is the share of deals whose mean is at least as far from the middle as the true one's. Two tests are
made, so each is held to half of the level. Intervals are over seeds.

"Unrelated" is said only where a relation would have been seen: where both series were measured twice at every step, on
two halves of the examples, the halves tell how much of a series is noise (reliability, by Spearman and Brown). The
intervals of the changes and of the levels, corrected for that noise (divided by the root of both reliabilities), must
both lie within ±0.3: measures may go together slowly although their quick changes do not. Without halves, or where less
than half of a series is signal, no relation found is "undecided".

Also told, because documents quote them: `raw`, of the values themselves, which a shared trend alone makes large, and
`partial`, with the ranks of the steps held fixed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
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
MIN_RELIABILITY = 0.5
"""Share of a series' variance that must be signal for the absence of a relation to mean anything."""
FLAT = 1e-6
"""Changes that differ by less than this share of the values are rounding."""

Verdict = Literal["related", "unrelated", "undecided", "too few"]


@dataclass(frozen=True, eq=False)
class Curve:
    """A series of one seed: values at steps, each step once."""

    steps: np.ndarray
    values: np.ndarray
    halves: tuple[np.ndarray, np.ndarray] | None = None
    """The same, measured on two halves of the examples."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Association:
    """One of the two correlations."""

    own: Estimate
    """Beyond that of different seeds."""
    p: float
    reliability: float
    """Geometric mean of both series': the share of the variance that is signal; NaN where it is unknown."""

    @property
    def is_found(self) -> bool:
        """p and the interval agree that there is one; half of the level, because there are two tests."""
        return self.p <= LEVEL / 2 and not self.own.low <= 0 <= self.own.high

    @property
    def is_ruled_out(self) -> bool:
        """A correlation of SMALL or more would have been seen, noise taken into account."""
        if not self.p > LEVEL / 2 or not self.reliability >= MIN_RELIABILITY:
            return False
        return max(-self.own.low, self.own.high) / self.reliability < SMALL

    def __str__(self) -> str:
        known = f", reliability {number(self.reliability)}" if math.isfinite(self.reliability) else ""
        tested = f", p {number(self.p)}" if math.isfinite(self.p) else ""
        return f"{self.own}{tested}{known}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Correlation:
    """What came out, and what it means."""

    verdict: Verdict
    raw: Estimate
    partial: Estimate
    changes: Association
    levels: Association
    permutations: int
    """Deals that p was counted in."""
    left_out: tuple[str, ...]
    """Why seeds do not count, one line each."""

    @property
    def seeds(self) -> int:
        """That count."""
        return self.raw.seeds

    @property
    def own(self) -> Estimate:
        """Of the correlation that decided: the one that was found, or else that of the changes."""
        return self.levels.own if self.levels.is_found and not self.changes.is_found else self.changes.own

    def __str__(self) -> str:
        said = {
            "related": "related beyond the shared trend",
            "unrelated": "not related beyond the shared trend",
            "undecided": f"undecided{self._why()}",
            "too few": f"too few seeds ({self.seeds}; at least {FEWEST})",
        }[self.verdict]
        numbers = f"of changes {self.changes}; of levels {self.levels}; raw {self.raw}, partial {self.partial}"
        tested = f"; {self.permutations:,} permutations" if self.permutations else ""
        out = f"; left out: {'; '.join(self.left_out)}" if self.left_out else ""
        return f"{said}: {numbers}{tested}{out}"

    def _why(self) -> str:
        reliability = max(self.changes.reliability, self.levels.reliability)
        if math.isnan(reliability):
            return " (no relation found, but the noise of the measures is unknown)"
        if reliability < MIN_RELIABILITY:
            return " (seeds differ by little more than noise)"
        if self.changes.is_ruled_out:
            return " (quick changes are unrelated, slow ones may be related)"
        return ""


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
    first, second = (common([pair[side] for pair in kept]) for side in (0, 1))
    deal = {"permutations": permutations, "seed": seed}
    p, deals = permutation_p(matrix, **deal)
    changes = Association(
        own=_clipped(over_seeds(_beyond_others(matrix))), p=p,
        reliability=_reliability(first, np.diff) * _reliability(second, np.diff),
    )  # fmt: skip
    away = _level_matrix(*common_pairs(kept))
    levels = Association(
        own=_clipped(over_seeds(_beyond_others(away))), p=permutation_p(away, **deal)[0],
        reliability=_reliability(first) * _reliability(second),
    )  # fmt: skip
    verdict: Verdict = "undecided"
    if len(kept) < FEWEST:
        verdict = "too few"
    elif changes.is_found or levels.is_found:
        verdict = "related"
    elif changes.is_ruled_out and levels.is_ruled_out:
        verdict = "unrelated"
    return Correlation(
        verdict=verdict, changes=changes, levels=levels, permutations=deals, left_out=tuple(left_out),
        raw=_clipped(over_seeds(_of(lambda steps, one, other: spearman(one, other), *pair) for pair in kept)),
        partial=_clipped(over_seeds(_of(partial, *pair) for pair in kept)),
    )  # fmt: skip


def _clipped(correlation: Estimate) -> Estimate:
    """With its interval inside −1 to 1."""
    low, high = np.clip([correlation.low, correlation.high], -1, 1).tolist()
    return replace(correlation, low=low, high=high)


def common_pairs(pairs: Sequence[tuple[Curve, Curve]]) -> tuple[np.ndarray, np.ndarray]:
    """Both series of all seeds at the steps that all of them have, (seed, step) each."""
    steps = _steps_of_all([curve for pair in pairs for curve in pair])
    series = np.empty((2, len(pairs), len(steps)))
    for seed, pair in enumerate(pairs):
        series[:, seed] = [_at(curve.steps, curve.values, steps) for curve in pair]
    return series[0], series[1]


def common(curves: Sequence[Curve]) -> tuple[np.ndarray, np.ndarray] | None:
    """Both halves of one series of all seeds at the steps that all of them have; None where one has no halves."""
    if not curves or any(curve.halves is None for curve in curves):
        return None
    steps = _steps_of_all(curves)
    halves = [[_at(curve.steps, half, steps) for half in curve.halves or ()] for curve in curves]
    both = np.array(halves)   # (seed, half, step)
    return both[:, 0], both[:, 1]


def _steps_of_all(curves: Sequence[Curve]) -> np.ndarray:
    steps: np.ndarray | None = None
    for curve in curves:
        finite = curve.steps[np.isfinite(np.asarray(curve.values, float))]
        steps = finite if steps is None else np.intersect1d(steps, finite)
    return np.empty(0, dtype=int) if steps is None else steps


def _at(steps: np.ndarray, values: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    return np.asarray(values, float)[np.searchsorted(steps, wanted)]


def _level_matrix(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Correlations of every seed's first series with every seed's second one, both without the mean of all seeds."""
    count = len(first)
    if count < 2 or first.shape[1] < FEWEST_STEPS:
        return np.full((count, count), np.nan)
    first, second = first - first.mean(axis=0), second - second.mean(axis=0)
    return np.array([[spearman(a, b) for b in second] for a in first])


def _reliability(
    halves: tuple[np.ndarray, np.ndarray] | None, of: Callable[[np.ndarray], np.ndarray] = lambda values: values
) -> float:
    """The root of the share of signal in what a seed does differently, from two halves of the examples."""
    if halves is None or halves[0].shape[1] < FEWEST_STEPS:
        return math.nan
    away = [of(half) - of(half).mean(axis=0) for half in halves]
    # of ranks and seed by seed, as the correlations themselves: a few steps with large changes must not speak for all
    together = float(np.mean([spearman(first, second) for first, second in zip(*away, strict=True)]))
    return math.sqrt(max(0.0, 2 * together / (1 + together))) if together > -1 else 0.0


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
