"""95 % confidence intervals by the jackknife over documents and the sources they share.

A source is a text that several documents contain parts of: benchmarks are often composed by joining
parts of a few texts. A row is what a score counts: an element (sentence or line of a document), or
one comparison of a metric, such as a window of Pk. A score is a function of sums over rows.

Rows of one document are correlated, and so are rows that depend on the same source. So the
jackknife computes the score without each document and without each source in turn; a group is what
it leaves out:

- The variance is V = V(documents) + V(sources) − V(intersections). An intersection is the set of
  rows of one document that depend on one source; its variance is part of both other terms and would
  count twice (two-way clustering; Cameron, Gelbach and Miller, 2011). If V(sources) is less than
  V(intersections), their difference counts as 0.
- A row at a boundary depends on two sources and is left out with either (dyadic clustering; Aronow,
  Samii and Assenova, 2015). The remaining rows are reweighted so that rows with one source and rows
  with two sources keep their fractions of all rows.
- The interval is that of Student's t, on the logit scale for fractions and on the log scale for
  losses, with the combined degrees of freedom of both terms (Satterthwaite, 1946).

For 20 documents composed of 8 sources, bootstrap percentiles over documents contain the true score
in 70 to 81 % of cases, these intervals in 94 to 96 % (tests/validity/test_document_intervals.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from neural.stats.estimate import ROUNDING_TOLERANCE, Estimate

MIN_SOURCES = 3
"""With fewer sources there are no intervals.

With two sources, leaving out one would leave no rows that depend on two sources.
"""
MAX_LOG = 700.0
"""exp(710) overflows."""

IdArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
GroupSum = Callable[[IdArray, IdArray, int], FloatArray]
"""(row indices, group index of each row, number of groups) → sums of rows by group, (groups, …)."""


@dataclass(frozen=True, eq=False)
class GroupSums:
    """Sums of rows by document, by shared source, and by intersection of document and source.

    An axis of size 2 separates rows with one source from rows with two sources; the latter are in
    the sums of both. `…` are the axes of one row. Fields about sources and intersections are None
    if documents share no sources.
    """

    documents: FloatArray
    """(documents, …)."""
    totals: FloatArray | None = None
    """Sums of all rows, (2, …)."""
    row_counts: FloatArray = field(default_factory=lambda: np.zeros(2))
    """Number of rows with one and with two sources, (2,)."""
    sources: FloatArray | None = None
    """(2, shared sources, …)."""
    source_row_counts: FloatArray | None = None
    """Number of rows of each shared source, (2, shared sources)."""
    intersections: FloatArray | None = None
    """(2, intersections, …)."""
    intersection_row_counts: FloatArray | None = None
    """Number of rows of each intersection, (2, intersections)."""
    intersection_sources: IdArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """Source of each intersection."""
    source_count: int = 0
    """Number of sources, including those in one document only."""


@dataclass(frozen=True, eq=False)
class RowGrouping:
    """Document and sources of each row, by which rows are summed."""

    document_ids: IdArray
    """Document index of each row."""
    document_count: int
    source_pairs: tuple[IdArray, IdArray] | None = None
    """The two sources of each row if sources are shared; a row with one source has it twice."""

    def sum_groups(self, add: GroupSum) -> GroupSums:
        """All sums that the jackknife needs; `add` sums rows by group (see `GroupSum`)."""
        all_rows = np.arange(len(self.document_ids))
        documents = add(all_rows, self.document_ids, self.document_count)
        if self.source_pairs is None:
            return GroupSums(documents)
        first, last = self.source_pairs
        single, double = np.flatnonzero(first == last), np.flatnonzero(first != last)
        double_sources = np.concatenate([first[double], last[double]])
        rows_and_sources = [(single, first[single]), (np.tile(double, 2), double_sources)]

        # Every intersection of document and source has the key document * source_id_count + source.
        # A source is shared if it has at least two intersections.
        source_id_count = int(max(first.max(), last.max())) + 1
        keys = [
            self.document_ids[rows] * source_id_count + sources
            for rows, sources in rows_and_sources
        ]
        intersections, inverse = np.unique(np.concatenate(keys), return_inverse=True)
        is_shared_source = (
            np.bincount(intersections % source_id_count, minlength=source_id_count) > 1
        )
        if not is_shared_source.any():
            return GroupSums(documents)
        source_index = np.cumsum(is_shared_source) - 1
        has_shared_source = is_shared_source[intersections % source_id_count]
        intersection_index = np.cumsum(has_shared_source) - 1
        sums: dict[str, list[FloatArray]] = {"sources": [], "intersections": []}
        row_counts: dict[str, list[FloatArray]] = {"sources": [], "intersections": []}
        for (rows, sources), row_intersections in zip(
            rows_and_sources, np.split(inverse, [len(single)]), strict=True
        ):
            selected = is_shared_source[sources]
            groups = {
                "sources": (source_index[sources[selected]], int(is_shared_source.sum())),
                "intersections": (
                    intersection_index[row_intersections[selected]],
                    int(has_shared_source.sum()),
                ),
            }
            for name, (group_ids, group_count) in groups.items():
                sums[name].append(add(rows[selected], group_ids, group_count))
                row_counts[name].append(np.bincount(group_ids, minlength=group_count).astype(float))
        totals = [add(rows, np.zeros(len(rows), dtype=np.int64), 1)[0] for rows in (single, double)]
        return GroupSums(
            documents,
            totals=np.stack(totals),
            row_counts=np.array([len(single), len(double)], dtype=float),
            sources=np.stack(sums["sources"]),
            source_row_counts=np.stack(row_counts["sources"]),
            intersections=np.stack(sums["intersections"]),
            intersection_row_counts=np.stack(row_counts["intersections"]),
            intersection_sources=source_index[intersections[has_shared_source] % source_id_count],
            source_count=len(np.unique(np.concatenate([first, last]))),
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class JackknifeScore:
    """A score, and the influence of each document, shared source and intersection on it.

    The influence is the score minus the score without the group. `documents`, `sources` and
    `intersections` hold one influence per group.
    """

    value: float
    """The score of all rows."""
    documents: FloatArray
    sources: FloatArray = field(default_factory=lambda: np.zeros(0))
    intersections: FloatArray = field(default_factory=lambda: np.zeros(0))
    intersection_sources: IdArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    source_count: int = 0

    def __sub__(self, other: JackknifeScore) -> JackknifeScore:
        """The difference of two scores of the same documents."""
        return self.combine(other, self.value - other.value, 1, -1)

    def relative_to(self, other: JackknifeScore) -> JackknifeScore:
        """The difference as a fraction of the other score; NaN if that is 0."""
        if not other.value > 0:
            return self.combine(other, math.nan, 0, 0)
        ratio = self.value / other.value
        return self.combine(other, ratio - 1, 1 / other.value, -ratio / other.value)

    def combine(
        self, other: JackknifeScore, value: float, own_factor: float, other_factor: float
    ) -> JackknifeScore:
        """A function f of both scores, by the delta method.

        `value` is its value; `own_factor` and `other_factor` are its partial derivatives.
        """
        return JackknifeScore(
            value=value,
            documents=own_factor * self.documents + other_factor * other.documents,
            sources=own_factor * self.sources + other_factor * other.sources,
            intersections=own_factor * self.intersections + other_factor * other.intersections,
            intersection_sources=self.intersection_sources,
            source_count=self.source_count,
        )

    def __neg__(self) -> JackknifeScore:
        return self.combine(self, -self.value, -1, 0)

    @property
    def document_variance(self) -> float:
        """Jackknife variance of the score over documents."""
        count = len(self.documents)
        deviations = self.documents - self.documents.mean()
        return float((count - 1) / count * (deviations**2).sum())

    @property
    def source_variance(self) -> float:
        """Jackknife variance over shared sources, including the variance of intersections."""
        return (
            float((self.source_count - 1) / self.source_count * (self.sources**2).sum())
            if self.source_count
            else 0.0
        )

    @property
    def source_share(self) -> float:
        """(V(sources) − V(intersections)) / V(sources), from 0 to 1.

        This fraction of the source variance is added to the document variance.
        """
        if not self.source_variance > 0:
            return 0.0
        count = np.bincount(self.intersection_sources)
        mean = np.bincount(self.intersection_sources, self.intersections) / count
        squares = np.bincount(
            self.intersection_sources, (self.intersections - mean[self.intersection_sources]) ** 2
        )
        within_variance = float((squares * count / np.maximum(count - 1, 1)).sum())
        return max(0.0, 1 - within_variance / self.source_variance)

    def standard_error(self) -> tuple[float, float]:
        """Standard error and its degrees of freedom; NaN if the variance cannot be estimated."""
        # A source count of 0 means that no sources are shared.
        too_few = len(self.documents) < 2 or 0 < self.source_count < MIN_SOURCES
        if too_few or not math.isfinite(self.value):
            return math.nan, math.nan
        by_documents, by_sources = self.document_variance, self.source_variance
        added_variance = by_sources * self.source_share
        variance = by_documents + added_variance
        # The score varies by rounding errors only, so it does not vary.
        if not math.sqrt(variance) > ROUNDING_TOLERANCE * max(1.0, abs(self.value)):
            return math.nan, math.nan
        # Satterthwaite: V² / (sum of each variance squared over its degrees of freedom).
        denominator = by_documents**2 / (len(self.documents) - 1)
        denominator += added_variance * by_sources / max(1, len(self.sources) - 1)
        return math.sqrt(variance), variance**2 / denominator

    def estimate(self, scale: Literal["plain", "positive", "share"] = "plain") -> Estimate:
        """The score with its 95 % interval; without one if the variance cannot be estimated.

        `scale` is "share" for scores from 0 to 1 (logit scale), "positive" for scores above 0 (log
        scale), else "plain".
        """
        error, degrees = self.standard_error()
        value, count = self.value, len(self.documents)
        # On the logit or log scale, the error is divided by the derivative of the inverse.
        if scale == "share" and 0 < value < 1:
            logit, error = math.log(value / (1 - value)), error / (value * (1 - value))
            estimate = Estimate.from_error(logit, error, degrees, count).map(_sigmoid)
        elif scale == "positive" and value > 0:
            estimate = Estimate.from_error(0.0, error / value, degrees, count)
            estimate = estimate.map(lambda log_ratio: value * math.exp(min(log_ratio, MAX_LOG)))
        else:
            estimate = Estimate.from_error(value, error, degrees, count)
        return replace(estimate, value=value)


def _sigmoid(logit: float) -> float:
    return 1 / (1 + math.exp(min(-logit, MAX_LOG)))


def jackknife(
    sums: GroupSums, statistic: Callable[[FloatArray], Mapping[str, npt.ArrayLike]]
) -> dict[str, JackknifeScore]:
    """Scores by name, with the influence of each group.

    `statistic` computes the scores by name from sums of rows, (…, counts) → (…).
    """
    total = sums.documents.sum(axis=0)
    # If a group has all rows, the score without it may be 0 / 0.
    with np.errstate(divide="ignore", invalid="ignore"):
        values, values_without = _leave_one_out(sums, total, statistic)
    return {
        name: JackknifeScore(
            value=value,
            **{
                kind: _compute_influence(value, left_out[name])
                for kind, left_out in values_without.items()
            },
            intersection_sources=sums.intersection_sources,
            source_count=sums.source_count,
        )
        for name, value in values.items()
    }


def _leave_one_out(
    sums: GroupSums,
    total: FloatArray,
    statistic: Callable[[FloatArray], Mapping[str, npt.ArrayLike]],
) -> tuple[dict[str, float], dict[str, Mapping[str, npt.ArrayLike]]]:
    """The scores by name, and the scores without each document, source and intersection.

    The second result has the kinds of groups ("documents", …) as keys, then the scores' names.
    """
    values = {name: float(np.asarray(value)) for name, value in statistic(total).items()}
    values_without = {"documents": statistic(total - sums.documents)}
    if sums.totals is not None:
        assert sums.sources is not None and sums.source_row_counts is not None
        assert sums.intersections is not None and sums.intersection_row_counts is not None
        values_without["sources"] = statistic(
            _sum_without(sums, sums.sources, sums.source_row_counts)
        )
        values_without["intersections"] = statistic(
            _sum_without(sums, sums.intersections, sums.intersection_row_counts)
        )
    return values, values_without


def _compute_influence(value: float, value_without: npt.ArrayLike) -> FloatArray:
    """Score minus the score without each group; 0 where the score without it is NaN."""
    changes = value - np.asarray(value_without, dtype=float)
    return np.where(np.isfinite(changes), changes, 0.0)


def _sum_without(sums: GroupSums, groups: FloatArray, row_counts: FloatArray) -> FloatArray:
    """Sums of the rows without each group, (groups, …).

    The sums of rows with one source and with two sources are scaled up to the original number of
    such rows, so that their proportion does not change. `row_counts` is (2, groups).
    """
    assert sums.totals is not None
    remaining = sums.row_counts[:, None] - row_counts
    factor = np.divide(
        sums.row_counts[:, None], remaining, out=np.zeros_like(remaining), where=remaining > 0
    )
    shape = (*factor.shape, *(1,) * (groups.ndim - 2))
    return ((sums.totals[:, None] - groups) * factor.reshape(shape)).sum(axis=0)
