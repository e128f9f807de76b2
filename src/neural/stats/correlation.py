"""Correlation of two series of a training, over several seeds, beyond their shared trend.

A seed stands for one training; the trainings differ only by their random seed. Each has two series
of values by training step, for example entropy and loss. Every series of a training follows a trend
over the steps, so any two of them correlate with each other. What all seeds share (the trend, the
learning-rate schedule, the order of learning) is therefore removed, in two ways. Both give Spearman
correlations, one per seed, which are averaged:

    changes   Both series are differenced, and the differences correlated. This detects relations
              between fast changes; noise hides slow ones.
    levels    The mean of all seeds at the same step is subtracted from both series, and the rests
              are correlated. This detects relations between slow changes.

The excess is the correlation of a seed's own two series minus that of the first series of one seed
with the second series of another, which only the shared trend can relate.

A permutation test asks whether a seed's own two series are more related than series of different
seeds. The second series are reassigned to the first ones in every possible way (in random ways if
there are more than `permutations`). p is the share of assignments whose mean correlation is at
least as far from the average over all pairs as that of the true assignment. There are two tests,
changes and levels, so each uses half of the significance level. Intervals are over seeds.

The verdict "unrelated" needs enough power. If both series were measured twice at every step, on two
halves of the examples, the halves show how much of a series is noise: the reliability
(Spearman–Brown) is the share of the variance that is signal. For "unrelated", the intervals of both
excesses, corrected for noise (divided by the geometric mean of both reliabilities), must lie within
±0.3. Without halves, or if less than half of the variance is signal, the verdict is "undecided".

Two more correlations are given because publications quote them: `raw`, that of the values, which a
shared trend alone makes large, and `partial`, the partial correlation given the step.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import permutations as all_permutations
from typing import Literal

import numpy as np

from neural.stats.estimate import Estimate, format_number
from neural.stats.means import MIN_SEEDS, estimate_mean

MAX_PERMUTATIONS = 10_000
"""Permutations that are tested; if there are more, this many are drawn at random."""
MIN_SHARED_STEPS = 6
"""Steps that two series must share; a seed with fewer is excluded."""
SIGNIFICANCE_LEVEL = 0.05
"""Probability of the verdict "related" for series that are not related."""
SMALL_CORRELATION = 0.3
"""A smaller correlation explains less than a tenth of the variance."""
MIN_RELIABILITY = 0.5
"""Share of the variance that must be signal for the verdict "unrelated"."""
MIN_RELATIVE_CHANGE = 1e-6
"""Changes that differ by less than this share of the values are rounding errors."""

CorrelationVerdict = Literal["related", "unrelated", "undecided", "too few"]


@dataclass(frozen=True, eq=False)
class Curve:
    """A series of one seed: values at distinct steps, in ascending order."""

    steps: np.ndarray
    values: np.ndarray
    halves: tuple[np.ndarray, np.ndarray] | None = None
    """Values at the same steps, measured on each half of the examples; None if not measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Association:
    """One of the two correlations: of changes or of levels."""

    excess: Estimate
    """Correlation of a seed's own two series minus that of series of different seeds."""
    p: float
    """p-value of the permutation test; NaN without a test."""
    reliability: float
    """Share of the variance that is signal, geometric mean of both series; NaN without halves."""

    @property
    def is_significant(self) -> bool:
        """Whether p is at most half of SIGNIFICANCE_LEVEL and the interval excludes 0.

        Half, because there are two tests: of changes and of levels.
        """
        return self.p <= SIGNIFICANCE_LEVEL / 2 and not self.excess.low <= 0 <= self.excess.high

    @property
    def is_ruled_out(self) -> bool:
        """Whether a correlation of `SMALL_CORRELATION` or more is excluded, despite the noise."""
        # written with `not`, so that NaN (no test, no halves) returns False
        if not self.p > SIGNIFICANCE_LEVEL / 2 or not self.reliability >= MIN_RELIABILITY:
            return False
        return max(-self.excess.low, self.excess.high) / self.reliability < SMALL_CORRELATION

    def __str__(self) -> str:
        text = str(self.excess)
        if math.isfinite(self.p):
            text += f", p {format_number(self.p)}"
        if math.isfinite(self.reliability):
            text += f", reliability {format_number(self.reliability)}"
        return text


@dataclass(frozen=True, slots=True, kw_only=True)
class Correlation:
    """Result of `correlate`; the module docstring defines its numbers."""

    verdict: CorrelationVerdict
    raw: Estimate
    """Spearman correlation of the values, trend included."""
    partial: Estimate
    """Partial Spearman correlation of the values, given the step."""
    changes: Association
    levels: Association
    permutation_count: int
    """Tested assignments of second to first series; 0 without a test."""
    excluded: tuple[str, ...]
    """Reasons for excluded seeds, one line each."""

    @property
    def seeds(self) -> int:
        """Included seeds."""
        return self.raw.n

    @property
    def excess(self) -> Estimate:
        """`excess` of the significant association; of changes if both or none are significant."""
        return (
            self.levels.excess
            if self.levels.is_significant and not self.changes.is_significant
            else self.changes.excess
        )

    def __str__(self) -> str:
        verdict = {
            "related": "related beyond the shared trend",
            "unrelated": "not related beyond the shared trend",
            "undecided": f"undecided{self._explain_undecided()}",
            "too few": f"needs {MIN_SEEDS} seeds, has {self.seeds}"
            + " that can be used" * bool(self.excluded),
        }[self.verdict]
        # numbers that these curves do not give are left out; the first two are from −2 to 2
        numbers = {
            "own curves minus other seeds', of changes": self.changes
            if math.isfinite(self.changes.excess.value)
            else None,
            "own curves minus other seeds', of levels": self.levels
            if math.isfinite(self.levels.excess.value)
            else None,
            "raw Spearman": self.raw if math.isfinite(self.raw.value) else None,
            "partial Spearman": self.partial if math.isfinite(self.partial.value) else None,
        }
        known = [f"{name} {number}" for name, number in numbers.items() if number is not None]
        text = verdict + (f": {'; '.join(known)}" if known else "; no correlation can be computed")
        if self.permutation_count:
            text += f"; {self.permutation_count:,} permutations"
        if self.excluded:
            text += f"; excluded: {'; '.join(self.excluded)}"
        return text

    def _explain_undecided(self) -> str:
        reliability = max(self.changes.reliability, self.levels.reliability)
        if math.isnan(reliability):
            return " (no relation found, but the noise of the measures is unknown)"
        if reliability < MIN_RELIABILITY:
            return " (seeds differ by little more than noise)"
        if self.changes.is_ruled_out:
            return " (fast changes are unrelated, slow ones may be related)"
        return ""


def correlate(
    seeds: Sequence[tuple[Curve, Curve]], *, permutations: int = MAX_PERMUTATIONS, seed: int = 0
) -> Correlation:
    """Correlate two curves over several trainings, at the steps where both curves are finite.

    `seeds` has the two curves of each training. At most `permutations` assignments are tested.
    `seed` is that of the random generator that draws the assignments.
    """
    included, excluded = [], []
    for index, pair in enumerate(seeds):
        reason = _exclusion_reason(*pair)
        if reason:
            excluded.append(f"seed {index + 1} of {len(seeds)}, {reason}")
        else:
            included.append(pair)
    change_matrix = _correlate_all_changes(included)
    first_halves, second_halves = (
        align_halves([pair[side] for pair in included]) for side in (0, 1)
    )
    options = {"permutations": permutations, "seed": seed}
    p, permutation_count = permutation_test(change_matrix, **options)
    changes = Association(
        excess=estimate_mean(_excess_over_other_seeds(change_matrix)).clip(-2.0, 2.0),
        p=p,
        reliability=_estimate_root_reliability(first_halves, np.diff)
        * _estimate_root_reliability(second_halves, np.diff),
    )
    level_matrix = _correlate_levels(*align_pairs(included))
    levels = Association(
        excess=estimate_mean(_excess_over_other_seeds(level_matrix)).clip(-2.0, 2.0),
        p=permutation_test(level_matrix, **options)[0],
        reliability=_estimate_root_reliability(first_halves)
        * _estimate_root_reliability(second_halves),
    )
    verdict: CorrelationVerdict = "undecided"
    if len(included) < MIN_SEEDS:
        verdict = "too few"
    elif changes.is_significant or levels.is_significant:
        verdict = "related"
    elif changes.is_ruled_out and levels.is_ruled_out:
        verdict = "unrelated"
    return Correlation(
        verdict=verdict,
        changes=changes,
        levels=levels,
        permutation_count=permutation_count,
        excluded=tuple(excluded),
        raw=estimate_mean(
            _apply_statistic(lambda steps, x, y: spearman(x, y), *pair) for pair in included
        ).clip(-1.0, 1.0),
        partial=estimate_mean(
            _apply_statistic(partial_correlation, *pair) for pair in included
        ).clip(-1.0, 1.0),
    )


def _correlate_all_changes(pairs: Sequence[tuple[Curve, Curve]]) -> np.ndarray:
    """Correlation of the changes of every first with every second series, at their shared steps.

    The result is [i, j] for the first series of seed i and the second of seed j.
    """
    curves = [curve for pair in pairs for curve in pair]
    if curves and all(_is_finite_at(curve, curves[0].steps) for curve in curves):
        # the usual case: every series is ranked once, instead of once per pair
        first, second = align_pairs(pairs)
        return _spearman_matrix(np.diff(first), np.diff(second))
    return np.array(
        [
            _apply_statistic(correlate_changes, first_curve, second_curve)
            for first_curve, _ in pairs
            for _, second_curve in pairs
        ]
    ).reshape(len(pairs), len(pairs))


def _is_finite_at(curve: Curve, steps: np.ndarray) -> bool:
    """Whether `steps` are those of the curve, and all its values are finite."""
    return np.array_equal(curve.steps, steps) and bool(
        np.isfinite(np.asarray(curve.values, float)).all()
    )


def align_pairs(pairs: Sequence[tuple[Curve, Curve]]) -> tuple[np.ndarray, np.ndarray]:
    """Both series of all seeds at their shared steps, (seed, step) each."""
    steps = _shared_steps([curve for pair in pairs for curve in pair])
    series = np.empty((2, len(pairs), len(steps)))
    for seed, pair in enumerate(pairs):
        series[:, seed] = [_values_at(curve.steps, curve.values, steps) for curve in pair]
    return series[0], series[1]


def align_halves(curves: Sequence[Curve]) -> tuple[np.ndarray, np.ndarray] | None:
    """Both halves of one series at the shared steps, (seed, step) each; None without halves."""
    if not curves or any(curve.halves is None for curve in curves):
        return None
    steps = _shared_steps(curves)
    halves = [
        [_values_at(curve.steps, half, steps) for half in curve.halves or ()] for curve in curves
    ]
    values = np.array(halves)  # (seed, half, step)
    return values[:, 0], values[:, 1]


def _shared_steps(curves: Sequence[Curve]) -> np.ndarray:
    """Steps at which all curves are finite."""
    steps: np.ndarray | None = None
    for curve in curves:
        finite = curve.steps[np.isfinite(np.asarray(curve.values, float))]
        if steps is None:
            steps = finite
        elif not np.array_equal(steps, finite):
            steps = np.intersect1d(steps, finite)
    return np.empty(0, dtype=int) if steps is None else steps


def _values_at(steps: np.ndarray, values: np.ndarray, target_steps: np.ndarray) -> np.ndarray:
    """Values at `target_steps`, all of which occur in `steps`."""
    return np.asarray(values, float)[np.searchsorted(steps, target_steps)]


def _correlate_levels(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Correlation of every first with every second series, after removing the mean of all seeds.

    `first` and `second` are [seed, step]. The result is [i, j] for the first series of seed i and
    the second of seed j; NaN with fewer than 2 seeds or MIN_SHARED_STEPS steps.
    """
    count = len(first)
    if count < 2 or first.shape[1] < MIN_SHARED_STEPS:
        return np.full((count, count), np.nan)
    first, second = first - first.mean(axis=0), second - second.mean(axis=0)
    return _spearman_matrix(first, second)


def _estimate_root_reliability(
    halves: tuple[np.ndarray, np.ndarray] | None,
    transform: Callable[[np.ndarray], np.ndarray] = lambda values: values,
) -> float:
    """Square root of the reliability of one series, after removing the mean of all seeds.

    `halves` are [seed, step] each, as `align_halves` returns them. `transform` is applied first:
    `np.diff` for changes. NaN without halves or with too few steps.
    """
    if halves is None or halves[0].shape[1] < MIN_SHARED_STEPS:
        return math.nan
    deviations = [transform(half) - transform(half).mean(axis=0) for half in halves]
    # by ranks, like the correlations, so that a few large changes do not dominate
    agreement = float(
        np.mean([spearman(first, second) for first, second in zip(*deviations, strict=True)])
    )
    # Spearman–Brown: reliability of the mean of two halves
    return math.sqrt(max(0.0, 2 * agreement / (1 + agreement))) if agreement > -1 else 0.0


def rank_values(values: np.ndarray) -> np.ndarray:
    """Ranks along the last axis, from 1; equal values share their mean rank."""
    from scipy.stats import rankdata

    return rankdata(values, axis=-1)


def spearman(x: np.ndarray, y: np.ndarray) -> float:
    """Rank correlation, −1 to 1; NaN where a series is constant."""
    return _pearson(rank_values(x), rank_values(y))


def _spearman_matrix(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """`spearman` of every row of `first` with every row of `second`."""
    # ranks and their mean are multiples of 1/2: the sums are exact in any order
    x, y = (
        ranks - ranks.mean(axis=1, keepdims=True)
        for ranks in (rank_values(first), rank_values(second))
    )
    norm = np.sqrt((x**2).sum(axis=1)[:, None] * (y**2).sum(axis=1))
    return np.divide(x @ y.T, norm, out=np.full(norm.shape, np.nan), where=norm > 0)


def correlate_changes(steps: np.ndarray, x: np.ndarray, y: np.ndarray) -> float:
    """Rank correlation of the changes from each step to the next; NaN if a series hardly changes.

    `steps` is not used: all statistics take the same arguments (`_apply_statistic`).
    """
    if _hardly_changes(x) or _hardly_changes(y):
        return math.nan
    return spearman(np.diff(x), np.diff(y))


def _hardly_changes(values: np.ndarray) -> bool:
    """Whether the changes from each step to the next are equal, up to rounding errors."""
    return bool(np.ptp(np.diff(values)) <= MIN_RELATIVE_CHANGE * np.abs(values).max())


def partial_correlation(steps: np.ndarray, x: np.ndarray, y: np.ndarray) -> float:
    """Partial rank correlation given the steps; NaN if a series is monotonic in them."""
    xy, x_steps, y_steps = spearman(x, y), spearman(x, steps), spearman(y, steps)
    unexplained = (1 - x_steps**2) * (1 - y_steps**2)
    return (xy - x_steps * y_steps) / math.sqrt(unexplained) if unexplained > 1e-12 else math.nan


def permutation_test(matrix: np.ndarray, *, permutations: int, seed: int) -> tuple[float, int]:
    """Two-sided p-value of the mean of the diagonal, and the number of tested assignments.

    `matrix[i, j]` is the correlation of the first series of seed i with the second one of seed j.
    An assignment pairs every row with a column; the diagonal is the true one. All assignments are
    tested if there are no more than `permutations`, else that many random ones. NaN and 0 with
    fewer than two seeds or a NaN in the matrix.
    """
    count = len(matrix)
    if count < 2 or np.isnan(matrix).any():
        return math.nan, 0
    is_exhaustive = math.factorial(count) <= permutations
    if is_exhaustive:
        assignments = np.array(list(all_permutations(range(count))))
    else:
        assignments = np.random.default_rng(seed).permuted(
            np.tile(np.arange(count), (permutations, 1)), axis=1
        )
    means = matrix[np.arange(count), assignments].mean(axis=1)
    expected = matrix.mean()
    distance = abs(np.diag(matrix).mean() - expected)
    # 1e-12, because equal means may differ by rounding
    extreme_count = int((abs(means - expected) >= distance - 1e-12).sum())
    total = len(assignments)
    # + 1 counts the true assignment, which random ones may not contain
    return (extreme_count / total if is_exhaustive else (extreme_count + 1) / (total + 1)), total


def _exclusion_reason(first_curve: Curve, second_curve: Curve) -> str:
    """Why a seed with these curves is left out; empty if it is not."""
    steps, first, second = align_curves(first_curve, second_curve)
    if len(steps) < MIN_SHARED_STEPS:
        return f"{len(steps)} shared steps (at least {MIN_SHARED_STEPS})"
    has_changes = not (_hardly_changes(first) or _hardly_changes(second))
    return "" if has_changes else "a series without change"


def align_curves(
    first_curve: Curve, second_curve: Curve
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Steps at which both curves are finite, and both values there."""
    first, second = (np.asarray(curve.values, float) for curve in (first_curve, second_curve))
    steps = first_curve.steps
    if not np.array_equal(steps, second_curve.steps):
        steps, first_rows, second_rows = np.intersect1d(
            steps, second_curve.steps, return_indices=True
        )
        first, second = first[first_rows], second[second_rows]
    finite = np.isfinite(first) & np.isfinite(second)
    return steps[finite], first[finite], second[finite]


def _apply_statistic(
    statistic: Callable[[np.ndarray, np.ndarray, np.ndarray], float],
    first_curve: Curve,
    second_curve: Curve,
) -> float:
    """`statistic(steps, x, y)` at the shared steps of two curves; NaN if they share too few."""
    steps, first, second = align_curves(first_curve, second_curve)
    return statistic(steps, first, second) if len(steps) >= MIN_SHARED_STEPS else math.nan


def _pearson(x: np.ndarray, y: np.ndarray) -> float:
    x, y = x - x.mean(), y - y.mean()
    norm = math.sqrt((x**2).sum() * (y**2).sum())
    return float((x * y).sum() / norm) if norm else math.nan


def _excess_over_other_seeds(matrix: np.ndarray) -> list[float]:
    """For each seed, its own correlation minus the mean correlation with series of other seeds.

    `matrix`: as in `permutation_test`.
    """
    count = len(matrix)
    if count < 2:
        return []
    own = np.diag(matrix)
    others = (matrix.sum(axis=0) + matrix.sum(axis=1) - 2 * own) / (2 * (count - 1))
    return list(own - others)
