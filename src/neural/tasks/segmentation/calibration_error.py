"""Expected calibration error (ECE), reliability diagrams, and the error of a perfect model.

A calibration error compares predicted probability and observed frequency in bins of similar
probabilities. There are three:

- plain: the usual ECE: mean absolute difference over bins of equal width (Naeini et al., 2015)
- equal_mass: the same over bins with equal counts, so that no bin is nearly empty
- debiased: root mean squared difference over equal-mass bins, after subtracting the part that
  chance adds (Bröcker, 2012; Kumar et al., 2019)

All errors lie between 0 (perfect) and 1 (always certain and wrong). A perfect model has exactly
right probabilities. By chance, its plain and equal-mass errors are still above 0, the more so the
fewer elements there are; `simulate_perfect_model` computes by how much.

Arrays have one entry per element (a sentence or line of a document): `p` is the predicted
probability, `hits` is 1 where the predicted event occurred and else 0, `documents` is the index of
its document. A source is a text that several documents contain parts of. Elements of one document
or source are correlated, so intervals are computed by leaving out documents and sources (jackknife,
stats/jackknife.py). An intersection is the set of elements of one document from one source.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

import numpy as np

from neural.stats.estimate import Estimate, summarize_simulations
from neural.stats.jackknife import GroupSums, IdArray, JackknifeScore, RowGrouping, jackknife
from neural.stats.means import compute_wilson_interval
from neural.tasks.segmentation.probability import (
    compute_confidence,
    element_brier_scores,
    element_log_losses,
    equal_mass_edges,
    equal_width_edges,
    sum_by_bin,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationScores:
    """Scores of one calibration method; lower is better for all of them.

    For class probabilities, the three calibration errors are those of the most likely class.
    """

    log_loss: Estimate
    """Mean log loss, in nats per element."""
    brier: Estimate
    """Mean Brier score: 0 to 1 for binary questions, 0 to 2 for classes."""
    ece: Estimate
    """The plain error."""
    ece_equal_mass: Estimate
    ece_debiased: Estimate

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON, with None for an unknown end of an interval."""
        return {item.name: getattr(self, item.name).to_dict() for item in fields(self)}

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any], documents: int) -> CalibrationScores:
        """Inverse of `to_dict`; `documents` is the number of documents that were scored."""
        return cls(
            **{name: Estimate.from_dict(score, n=documents) for name, score in saved.items()}
        )


def score_calibrations(
    probabilities: Mapping[str, np.ndarray],
    truth: np.ndarray,
    documents: np.ndarray,
    *,
    sources: SourcePairs = None,
) -> dict[str, CalibrationScores]:
    """Scores of several calibration methods by name.

    `probabilities` are, by method, those of a boundary, (n,), or of the classes, (n, C). `truth` is
    0 or 1, or the class index, (n,).
    """
    scores = {}
    for name, p in probabilities.items():
        errors = estimate_calibration_errors(
            *compute_confidence(p, truth), documents, sources=sources
        )
        scores[name] = CalibrationScores(
            log_loss=estimate_mean(
                element_log_losses(p, truth), documents, sources=sources, scale="positive"
            ),
            brier=estimate_mean(
                element_brier_scores(p, truth), documents, sources=sources, scale="positive"
            ),
            ece=errors.plain,
            ece_equal_mass=errors.equal_mass,
            ece_debiased=errors.debiased,
        )
    return scores


def estimate_mean(
    values: np.ndarray,
    documents: np.ndarray,
    *,
    sources: SourcePairs = None,
    scale: Literal["plain", "positive"] = "plain",
) -> Estimate:
    """Mean of `values` over elements, with a 95 % interval by jackknife.

    `scale="positive"` computes the interval on the log scale, so that it stays above 0.
    """

    # Sum of the values and number of values in each group, (count, 2).
    def add(members: IdArray, groups: IdArray, count: int) -> np.ndarray:
        rows = [
            np.bincount(groups, values[members], minlength=count),
            np.bincount(groups, minlength=count),
        ]
        return np.stack(rows, axis=1).astype(float)

    sums = RowGrouping(documents, int(documents.max()) + 1, sources).sum_groups(add)
    mean = jackknife(sums, lambda totals: {"mean": totals[..., 0] / totals[..., 1]})["mean"]
    return mean.estimate(scale)


DEFAULT_BINS = 15
"""Number of bins of all errors and diagrams."""
DEFAULT_SIMULATIONS = 1000
"""Number of simulations of a perfect model."""
MAX_RANDOM_DRAWS = 200_000_000
"""Maximum number of random numbers of all simulations together.

With very many elements, fewer simulations are run to stay below it.
"""
DEGREES_PER_CLUSTER = 3
"""Degrees of freedom of the simulated variance, per cluster (document or source).

It would be 1 if all bins varied together, and the number of bins if they were independent. With 3,
a perfect model is rejected as rarely as it should be (tests/validity).
"""

MAX_INTERVAL_WIDENING = 1.25
"""Limit of the upper end of the debiased error's interval; see `_root_interval`."""
SourcePairs = tuple[IdArray, IdArray] | None
"""The two sources that each element depends on, (n,) each; None if documents share no sources.

A boundary decision depends on the sources of two neighbouring elements, a label on one source,
which is then in both arrays.
"""


def mean_bin_error(sums: np.ndarray) -> np.ndarray:
    """Plain or equal-mass error from the sums of `sum_by_bin`, (…, 3, bins) → (…).

    The three sums of a bin are its count, its probabilities and its hits.
    """
    count, p, hits = np.moveaxis(sums, -2, 0)
    return np.abs(hits - p).sum(axis=-1) / count.sum(axis=-1)


def debiased_squared_error(sums: np.ndarray) -> np.ndarray:
    """Mean squared difference minus the part that chance adds, (…, 3, bins) → (…).

    `sums` are as in `mean_bin_error`. For a perfect model the result is below 0 about as often as
    above.
    """
    count, p, hits = np.moveaxis(sums, -2, 0)
    divisor = np.maximum(count, 1)
    p, frequency = p / divisor, hits / divisor
    # The variance of the frequency is estimated from the hits. With a single element in a bin that
    # is impossible; the variance that the model predicts is used instead.
    chance_variance = np.where(
        count > 1, frequency * (1 - frequency) / np.maximum(count - 1, 1), p * (1 - p)
    )
    return (count * ((frequency - p) ** 2 - chance_variance)).sum(axis=-1) / count.sum(axis=-1)


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationErrors:
    """The three errors, each with a 95 % interval by jackknife.

    Plain and equal-mass errors are biased upwards. Their intervals are centred on the biased value,
    so they contain a small true error too rarely, and a true error of 0 hardly ever. The interval
    of the debiased error does not have this problem.
    """

    plain: Estimate
    equal_mass: Estimate
    debiased: Estimate


def estimate_calibration_errors(
    p: np.ndarray,
    hits: np.ndarray,
    documents: np.ndarray,
    *,
    sources: SourcePairs = None,
    bins: int = DEFAULT_BINS,
) -> CalibrationErrors:
    """The three calibration errors with their intervals."""
    grouping = RowGrouping(documents, int(documents.max()) + 1, sources)
    equal_width = _group_bin_sums(grouping, equal_width_edges(bins), p, hits)
    equal_mass = _group_bin_sums(grouping, equal_mass_edges(p, bins), p, hits)
    return CalibrationErrors(
        plain=_estimate_error(equal_width, mean_bin_error).estimate().clip(least=0.0),
        equal_mass=_estimate_error(equal_mass, mean_bin_error).estimate().clip(least=0.0),
        debiased=_root_interval(_estimate_error(equal_mass, debiased_squared_error).estimate()),
    )


def _group_bin_sums(
    grouping: RowGrouping, edges: np.ndarray, p: np.ndarray, hits: np.ndarray
) -> GroupSums:
    """Sums of counts, probabilities and hits by bin, (groups, 3, bins), for each kind of group.

    Groups are documents, sources and intersections.
    """

    # Sums of the elements `members`, whose groups are `groups`, for `count` groups.
    def add(members: IdArray, groups: IdArray, count: int) -> np.ndarray:
        return sum_by_bin(edges, p[members], hits[members], groups, count)

    return grouping.sum_groups(add)


def _estimate_error(
    sums: GroupSums, error_from_sums: Callable[[np.ndarray], np.ndarray]
) -> JackknifeScore:
    """Jackknife estimate of an error that is a function of bin sums."""
    return jackknife(sums, lambda totals: {"error": error_from_sums(totals)})["error"]


def simulate_perfect_model(
    p: np.ndarray,
    hits: np.ndarray | None = None,
    documents: np.ndarray | None = None,
    *,
    sources: SourcePairs = None,
    bins: int = DEFAULT_BINS,
    simulations: int = DEFAULT_SIMULATIONS,
    seed: int = 0,
) -> Estimate:
    """Plain error of a perfect model by simulation: its mean and the range of the central 90 %.

    With `hits` and several documents, the correlation of elements in a document or source is
    estimated from `hits` (wild cluster bootstrap): the residuals of a bin (hits minus
    probabilities, minus their mean), summed by document, are multiplied by random normal factors.
    The variance of a bin is at least that of independent elements.

    Otherwise each element is drawn independently; the result is too small if elements are
    correlated.
    """
    rng = np.random.default_rng(seed)
    if hits is None or documents is None or documents.max() == 0:
        errors = _simulate_independent(p, bins, simulations, rng)
    else:
        errors = _simulate_clustered(p, hits, documents, sources, bins, simulations, rng)
    return summarize_simulations(errors)


def _simulate_independent(
    p: np.ndarray, bins: int, simulations: int, rng: np.random.Generator
) -> np.ndarray:
    """Plain errors, (simulations,), if each element is a hit with its own probability."""
    bin_ids = np.searchsorted(equal_width_edges(bins), p, side="right")
    order = np.argsort(bin_ids, kind="stable")
    p, bin_ids = p[order], bin_ids[order]
    starts = np.flatnonzero(np.diff(bin_ids, prepend=-1))
    expected = np.add.reduceat(p, starts)
    # At least 20 simulations, because the caller takes quantiles of 5 and 95 %.
    errors = np.empty(max(20, min(simulations, MAX_RANDOM_DRAWS // len(p))))
    for simulation in range(len(errors)):
        hits = np.add.reduceat(rng.random(len(p)) < p, starts, dtype=np.int64)
        errors[simulation] = np.abs(hits - expected).sum() / len(p)
    return errors


def _simulate_clustered(
    p: np.ndarray,
    hits: np.ndarray,
    documents: np.ndarray,
    sources: SourcePairs,
    bins: int,
    simulations: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """Plain errors, (simulations,), with the observed correlation in documents and sources."""
    edges = equal_width_edges(bins)
    count = int(documents.max()) + 1
    sums = _group_bin_sums(RowGrouping(documents, count, sources), edges, p, hits)
    bin_counts, probability_sums, hit_counts = sums.documents.sum(axis=0)
    mean_residual = (hit_counts - probability_sums) / np.maximum(bin_counts, 1)

    def compute_residuals(groups: np.ndarray) -> np.ndarray:
        # Shape (groups, bins). The mean residual of each bin is subtracted, because it is the
        # miscalibration of the model, which a perfect model does not have.
        return groups[:, 2] - groups[:, 1] - mean_residual * groups[:, 0]

    by_document = compute_residuals(sums.documents) / _residual_scale(sums.documents)
    terms = [by_document]
    if sums.sources is not None and sums.intersections is not None:
        source_sums = sums.sources.sum(axis=0)
        by_source = compute_residuals(source_sums) / _residual_scale(source_sums)
        within_variance = _within_intersection_variance(
            compute_residuals(sums.intersections.sum(axis=0)), sums.intersection_sources
        )
        # The variance within intersections of document and source is part of both terms. It must
        # count once, so the smaller term is scaled down.
        smaller, larger = sorted((by_document, by_source), key=lambda term: float((term**2).sum()))
        kept_share = max(0.0, 1 - within_variance / max(float((smaller**2).sum()), 1e-300))
        terms = [larger, np.sqrt(kept_share) * smaller]
    # Simulated sums of residuals of each bin, (simulations, bins).
    deviations = sum(rng.standard_normal((simulations, len(term))) @ term for term in terms)
    variance = np.sum([(term**2).sum(axis=0) for term in terms], axis=0)
    independent_variance = np.bincount(
        np.searchsorted(edges, p, side="right"), p * (1 - p), minlength=bins
    )
    # Noise that raises the variance of each bin at least to that of independent elements.
    missing_std = np.sqrt(np.maximum(independent_variance - variance, 0))
    deviations += rng.standard_normal((simulations, bins)) * missing_std
    # Student's t distribution instead of the normal one, because the variance is an estimate.
    degrees = DEGREES_PER_CLUSTER * len(terms[0])
    deviations *= np.sqrt(degrees / rng.chisquare(degrees, size=(simulations, 1)))
    return np.abs(deviations).sum(axis=1) / len(p)


def _residual_scale(groups: np.ndarray) -> np.ndarray:
    """Factor by which subtracting the mean of all groups shrinks the residuals, per bin: (bins,).

    It is at least 0.5, so that dividing by it at most doubles a residual. `groups` are bin sums,
    (groups, 3, bins).
    """
    counts = groups[:, 0]
    # Fraction of the variance that is lost because a group is part of the mean itself.
    lost_share = (counts**2).sum(axis=0) / np.maximum(counts.sum(axis=0), 1) ** 2
    return np.sqrt(np.maximum(1 - lost_share, 0.25))


def _within_intersection_variance(residuals: np.ndarray, intersection_sources: IdArray) -> float:
    """Variance of the residuals within sources, between their intersections, summed over bins.

    `residuals` is (intersections, bins); `intersection_sources` is the source of each intersection.
    """
    count = np.bincount(intersection_sources)
    variance = 0.0
    for column in residuals.T:
        mean = np.bincount(intersection_sources, column) / count
        squares = np.bincount(intersection_sources, (column - mean[intersection_sources]) ** 2)
        variance += float((squares * count / np.maximum(count - 1, 1)).sum())
    return variance


def _root_interval(square: Estimate) -> Estimate:
    """Interval of the square root of a squared error; values below 0 become 0.

    The root of the upper end would be too low too often. So the upper end is value + half width /
    (2 · value) (delta method), but at most `MAX_INTERVAL_WIDENING` times the root, because the
    delta method fails for values near 0.
    """
    value, low, high = np.sqrt(np.maximum([square.value, square.low, square.high], 0)).tolist()
    if value > 0:
        high = min(value + (square.high - square.value) / (2 * value), MAX_INTERVAL_WIDENING * high)
    return Estimate(value, low, high, square.n)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReliabilityDiagram:
    """Reliability diagram: observed frequency by predicted probability, in bins.

    Bins have about equal counts; those in files of older versions have equal widths. Tuples have
    one entry per bin that is not empty, in the order of the probabilities, unless their docstring
    says otherwise.
    """

    counts: tuple[int, ...]
    """Number of elements."""
    mean_probability: tuple[float, ...]
    observed_frequency: tuple[float, ...]
    """Fraction of hits."""
    low: tuple[float, ...]
    high: tuple[float, ...]
    """Ends of the 95 % interval of the observed frequency."""
    edges: tuple[float, ...]
    """Inner edges of all bins, empty ones included."""
    all_counts: tuple[int, ...]
    """Counts of all bins, empty ones included."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> ReliabilityDiagram:
        """Inverse of `to_dict`; `saved` may come from a JSON file, where tuples are lists."""
        return cls(**{key: tuple(value) for key, value in saved.items()})


def compute_reliability(
    p: np.ndarray,
    hits: np.ndarray,
    documents: np.ndarray,
    *,
    sources: SourcePairs = None,
    bins: int = DEFAULT_BINS,
) -> ReliabilityDiagram:
    """Reliability diagram with bins of equal counts, as those of the equal-mass error.

    With bins of equal width, most elements would be in one or two bins, and single elements in the
    others. Intervals are Wilson's (1927), which are valid also for frequencies of 0 and 1. Elements of one
    document or source are correlated, so the count of a bin is replaced by its effective sample
    size: the count divided by the design effect, which is at least 1.
    """
    edges = equal_mass_edges(p, bins)
    grouping = RowGrouping(documents, int(documents.max()) + 1, sources)
    sums = _group_bin_sums(grouping, edges, p, hits)
    all_counts = sums.documents[:, 0].sum(axis=0)
    occupied = all_counts > 0
    counts, probability_sums, hit_counts = sums.documents[:, :, occupied].sum(axis=0)
    frequency = hit_counts / counts
    design_effect, degrees = _estimate_design_effect(sums, occupied, frequency)
    low, high = compute_wilson_interval(frequency, counts, design_effect, degrees)
    return ReliabilityDiagram(
        counts=_to_ints(counts),
        mean_probability=_to_floats(probability_sums / counts),
        observed_frequency=_to_floats(frequency),
        low=_to_floats(low),
        high=_to_floats(high),
        edges=_to_floats(edges),
        all_counts=_to_ints(all_counts),
    )


def _estimate_design_effect(
    sums: GroupSums, occupied: np.ndarray, frequency: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Design effect of each bin, and the degrees of freedom of its variance, (occupied bins,) each.

    The design effect (Kish) is the variance of the number of hits, divided by the variance if all
    elements were independent. The variance is that between documents plus the part that shared
    sources add; their degrees of freedom are combined by Satterthwaite's formula (1946).
    """

    # Variance of the hits between groups, and its degrees of freedom, (bins,) each.
    def compute_between_variance(groups: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        group_count = (groups[:, 0] > 0).sum(axis=0)
        squares = ((groups[:, 2] - frequency * groups[:, 0]) ** 2).sum(axis=0)
        degrees = np.maximum(group_count - 1, 1)
        return squares * group_count / degrees, degrees

    document_sums = sums.documents[:, :, occupied]
    variance, degrees = compute_between_variance(document_sums)
    if sums.sources is not None and sums.intersections is not None:
        source_variance, source_degrees = compute_between_variance(
            sums.sources.sum(axis=0)[:, :, occupied]
        )
        intersections = sums.intersections.sum(axis=0)[:, :, occupied]
        within_variance = ((intersections[:, 2] - frequency * intersections[:, 0]) ** 2).sum(axis=0)
        added_variance = np.maximum(source_variance - within_variance, 0)
        total_variance = np.maximum(variance + added_variance, 1e-300)  # no division by 0
        degrees = total_variance**2 / np.maximum(
            variance**2 / degrees + added_variance * source_variance / source_degrees, 1e-300
        )
        variance = variance + added_variance
    independent_variance = document_sums[:, 0].sum(axis=0) * frequency * (1 - frequency)
    effect = np.divide(
        variance,
        independent_variance,
        out=np.ones_like(variance),
        where=independent_variance > 0,
    )
    return np.maximum(effect, 1), np.maximum(degrees, 1)


def _to_floats(values: np.ndarray) -> tuple[float, ...]:
    return tuple(values.tolist())


def _to_ints(values: np.ndarray) -> tuple[int, ...]:
    return tuple(values.astype(int).tolist())
