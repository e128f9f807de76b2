"""Expected calibration error (ECE), reliability diagrams, and the error of a perfect model.

Three errors compare probability and observed frequency in bins:

- plain: fifteen bins of equal width; mean absolute distance (Naeini et al., 2015)
- equal_mass: the same with equal counts in the bins, so that none is nearly empty
- debiased: root mean squared distance over equal-mass bins, minus the part that chance adds
  (Bröcker, 2012; Kumar et al., 2019)

All errors lie between 0 (perfect) and 1 (always certain and wrong). By chance, the first two are
above 0 also for a perfect model, the more so the fewer elements there are; `simulate_perfect_model`
computes by how much.

Arrays have one entry per element (a sentence or line of a document): `p` is the predicted
probability, `hits` is 1 where the predicted event occurred, `documents` is the document index.
Sources are texts that several documents contain parts of; see `confidence_intervals.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from scipy.special import ndtri, stdtrit

from neural.tasks.segmentation.confidence_intervals import (
    ConfidenceInterval,
    GroupSums,
    IdArray,
    JackknifeEstimate,
    RowGrouping,
    jackknife,
)
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
    """Scores of one calibration method. Lower is better in all."""

    log_loss: ConfidenceInterval
    """Nats per element."""
    brier: ConfidenceInterval
    """0 to 1 for binary questions, 0 to 2 for classes."""
    ece: ConfidenceInterval
    """Equal-width bins. All three errors of classes concern the most likely class."""
    ece_equal_mass: ConfidenceInterval
    ece_debiased: ConfidenceInterval

    def to_dict(self) -> dict[str, Any]:
        """Plain data; an unknown end of an interval is None, since JSON has no NaN."""
        return {
            name: {key: value if value == value else None for key, value in interval.items()}
            for name, interval in asdict(self).items()
        }

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> CalibrationScores:
        """Inverse of `to_dict`, also after a JSON file."""
        intervals = {
            name: {key: math.nan if value is None else value for key, value in interval.items()}
            for name, interval in saved.items()
        }
        return cls(**{name: ConfidenceInterval(**interval) for name, interval in intervals.items()})


def score_calibrations(
    probabilities: Mapping[str, np.ndarray],
    truth: np.ndarray,
    documents: np.ndarray,
    *,
    sources: SourcePairs = None,
) -> dict[str, CalibrationScores]:
    """Scores of several calibration methods by name.

    `probabilities` are those of a boundary, (n,), or of the classes, (n, C); `truth` is 0 or 1, or
    the class index, (n,). `documents` is the index of each element's document.
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
) -> ConfidenceInterval:
    """Mean over elements, with an interval over documents and shared sources.

    `scale="positive"` computes the interval on the log scale, so that it stays above 0.
    """

    def add(members: IdArray, groups: IdArray, count: int) -> np.ndarray:
        rows = [
            np.bincount(groups, values[members], minlength=count),
            np.bincount(groups, minlength=count),
        ]
        return np.stack(rows, axis=1).astype(float)

    sums = RowGrouping(documents, int(documents.max()) + 1, sources).sum_groups(add)
    mean = jackknife(sums, lambda totals: {"mean": totals[..., 0] / totals[..., 1]})["mean"]
    return mean.interval(scale)


DEFAULT_BINS = 15
DEFAULT_SIMULATIONS = 1000
MAX_RANDOM_DRAWS = 200_000_000
"""Limit on the random numbers of all simulations together; for very many elements there are fewer
simulations."""
DEGREES_PER_CLUSTER = 3
"""Degrees of freedom of the variance per cluster (document or source).

One would be right if all bins varied together, the number of bins if they were independent; three
keeps the false-alarm rate (tests/validity).
"""

MAX_INTERVAL_WIDENING = 1.25
"""Maximum factor on the upper end of a debiased error near 0."""
SourcePairs = tuple[IdArray, IdArray] | None
"""The two sources that each element depends on, if documents share sources."""


def mean_bin_error(sums: np.ndarray) -> np.ndarray:
    """Plain or equal-mass error from the sums of `sum_by_bin`, (…, 3, bins) → (…).

    The three sums of a bin are its count, its probabilities and its hits.
    """
    count, p, hits = np.moveaxis(sums, -2, 0)
    return np.abs(hits - p).sum(axis=-1) / count.sum(axis=-1)


def debiased_squared_error(sums: np.ndarray) -> np.ndarray:
    """Squared error minus its expectation by chance, (…, 3, bins) → (…); see `mean_bin_error`.

    For a perfect model the result is below 0 about as often as above.
    """
    count, p, hits = np.moveaxis(sums, -2, 0)
    divisor = np.maximum(count, 1)
    p, frequency = p / divisor, hits / divisor
    # The variance of one element cannot be estimated; the one the model predicts replaces it.
    chance_variance = np.where(
        count > 1, frequency * (1 - frequency) / np.maximum(count - 1, 1), p * (1 - p)
    )
    return (count * ((frequency - p) ** 2 - chance_variance)).sum(axis=-1) / count.sum(axis=-1)


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationErrors:
    """The three errors, each with a 95 % interval over documents and shared sources.

    Intervals are centred on the value and clipped at 0. Plain and equal-mass errors are biased
    upwards, so their intervals cover a small true error too rarely, and an error of 0 hardly ever;
    the interval of the debiased error does not have this problem.
    """

    plain: ConfidenceInterval
    equal_mass: ConfidenceInterval
    debiased: ConfidenceInterval


def estimate_calibration_errors(
    p: np.ndarray,
    hits: np.ndarray,
    documents: np.ndarray,
    *,
    sources: SourcePairs = None,
    bins: int = DEFAULT_BINS,
) -> CalibrationErrors:
    """Calibration errors of probabilities and hits (0 or 1); `documents` are document indices."""
    grouping = RowGrouping(documents, int(documents.max()) + 1, sources)
    equal_width = _group_bin_sums(grouping, equal_width_edges(bins), p, hits)
    equal_mass = _group_bin_sums(grouping, equal_mass_edges(p, bins), p, hits)
    return CalibrationErrors(
        plain=_clip_at_zero(_estimate_error(equal_width, mean_bin_error).interval()),
        equal_mass=_clip_at_zero(_estimate_error(equal_mass, mean_bin_error).interval()),
        debiased=_root_interval(_estimate_error(equal_mass, debiased_squared_error).interval()),
    )


def _group_bin_sums(
    grouping: RowGrouping, edges: np.ndarray, p: np.ndarray, hits: np.ndarray
) -> GroupSums:
    """Counts, probabilities and hits by bin, (groups, 3, bins), summed by document and source."""

    def add(members: IdArray, groups: IdArray, count: int) -> np.ndarray:
        return sum_by_bin(edges, p[members], hits[members], groups, count)

    return grouping.sum_groups(add)


def _estimate_error(
    sums: GroupSums, error_from_sums: Callable[[np.ndarray], np.ndarray]
) -> JackknifeEstimate:
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
) -> ConfidenceInterval:
    """Plain error of a model with exactly right probabilities: mean and central 90 %.

    Elements of one document or source are correlated; the correlation is estimated from `hits`. The
    residuals (hit − probability − mean residual of the bin), summed by document and bin, are
    multiplied by random normal factors; a bin never varies less than independent elements would.
    Without `hits`, or with one document, elements are drawn independently; the result is too small
    if they are correlated.
    """
    rng = np.random.default_rng(seed)
    if hits is None or documents is None or documents.max() == 0:
        errors = _simulate_independent(p, bins, simulations, rng)
    else:
        errors = _simulate_clustered(p, hits, documents, sources, bins, simulations, rng)
    low, high = np.quantile(errors, (0.05, 0.95))
    return ConfidenceInterval(value=float(errors.mean()), low=float(low), high=float(high))


def _simulate_independent(
    p: np.ndarray, bins: int, simulations: int, rng: np.random.Generator
) -> np.ndarray:
    """Plain errors, (simulations,), if each element is a hit with its own probability."""
    bin_ids = np.searchsorted(equal_width_edges(bins), p, side="right")
    order = np.argsort(bin_ids, kind="stable")
    p, bin_ids = p[order], bin_ids[order]
    starts = np.flatnonzero(np.diff(bin_ids, prepend=-1))
    expected = np.add.reduceat(p, starts)
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
        # (groups, bins), relative to the mean of the bin: only the correlation is of interest here,
        # not the miscalibration itself.
        return groups[:, 2] - groups[:, 1] - mean_residual * groups[:, 0]

    by_document = compute_residuals(sums.documents) / _residual_scale(sums.documents)
    terms = [by_document]
    if sums.sources is not None and sums.intersections is not None:
        source_sums = sums.sources.sum(axis=0)
        by_source = compute_residuals(source_sums) / _residual_scale(source_sums)
        within_variance = _within_intersection_variance(
            compute_residuals(sums.intersections.sum(axis=0)), sums.intersection_sources
        )
        # The variance within intersections is in both terms; subtract it from the smaller one.
        smaller, larger = sorted((by_document, by_source), key=lambda term: float((term**2).sum()))
        kept_share = max(0.0, 1 - within_variance / max(float((smaller**2).sum()), 1e-300))
        terms = [larger, np.sqrt(kept_share) * smaller]
    deviations = sum(rng.standard_normal((simulations, len(term))) @ term for term in terms)
    variance = np.sum([(term**2).sum(axis=0) for term in terms], axis=0)
    independent_variance = np.bincount(
        np.searchsorted(edges, p, side="right"), p * (1 - p), minlength=bins
    )
    missing_std = np.sqrt(np.maximum(independent_variance - variance, 0))
    deviations += rng.standard_normal((simulations, bins)) * missing_std
    # Student's t instead of normal, as the variance is estimated.
    degrees = DEGREES_PER_CLUSTER * len(terms[0])
    deviations *= np.sqrt(degrees / rng.chisquare(degrees, size=(simulations, 1)))
    return np.abs(deviations).sum(axis=1) / len(p)


def _residual_scale(groups: np.ndarray) -> np.ndarray:
    """Factor per bin by which subtracting the groups' own mean shrinks deviations; ≥ 0.5."""
    counts = groups[:, 0]
    lost_share = (counts**2).sum(axis=0) / np.maximum(counts.sum(axis=0), 1) ** 2
    return np.sqrt(np.maximum(1 - lost_share, 0.25))


def _within_intersection_variance(residuals: np.ndarray, intersection_sources: IdArray) -> float:
    """Variance within intersections of document and source, summed over bins."""
    count = np.bincount(intersection_sources)
    variance = 0.0
    for column in residuals.T:
        mean = np.bincount(intersection_sources, column) / count
        squares = np.bincount(intersection_sources, (column - mean[intersection_sources]) ** 2)
        variance += float((squares * count / np.maximum(count - 1, 1)).sum())
    return variance


def _clip_at_zero(interval: ConfidenceInterval) -> ConfidenceInterval:
    # np.maximum keeps NaN
    value, low, high = np.maximum([interval.value, interval.low, interval.high], 0).tolist()
    return ConfidenceInterval(value=value, low=low, high=high)


def _root_interval(square: ConfidenceInterval) -> ConfidenceInterval:
    """Interval of the root of a squared error, which may be below 0 by chance.

    The upper end is linearized (delta method): the root of the upper end is too low too often.
    """
    value, low, high = np.sqrt(np.maximum([square.value, square.low, square.high], 0)).tolist()
    if value > 0:
        high = min(value + (square.high - square.value) / (2 * value), MAX_INTERVAL_WIDENING * high)
    return ConfidenceInterval(value=value, low=low, high=high)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReliabilityDiagram:
    """Reliability diagram: one entry per bin that is not empty, from low to high."""

    counts: tuple[int, ...]
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
        """Plain data."""
        return asdict(self)

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> ReliabilityDiagram:
        """Inverse of `to_dict`, also after a JSON file."""
        return cls(**{key: tuple(value) for key, value in saved.items()})


def compute_reliability(
    p: np.ndarray,
    hits: np.ndarray,
    documents: np.ndarray,
    *,
    sources: SourcePairs = None,
    bins: int = DEFAULT_BINS,
) -> ReliabilityDiagram:
    """Reliability diagram with the equal-width bins of the plain error.

    Intervals are Wilson's (1927), valid also for frequencies of 0 and 1. Elements of one document
    or source are correlated, so the count of a bin is replaced by its effective sample size, at
    most the count.
    """
    edges = equal_width_edges(bins)
    grouping = RowGrouping(documents, int(documents.max()) + 1, sources)
    sums = _group_bin_sums(grouping, edges, p, hits)
    all_counts = sums.documents[:, 0].sum(axis=0)
    occupied = all_counts > 0
    counts, probability_sums, hit_counts = sums.documents[:, :, occupied].sum(axis=0)
    frequency = hit_counts / counts
    design_effect, degrees = _estimate_design_effect(sums, occupied, frequency)
    low, high = _wilson_interval(frequency, counts, design_effect, degrees)
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
    """Design effect per bin (Kish: variance over that of independent elements), degrees of freedom.

    The variance is that between documents plus the part that shared sources add (Satterthwaite,
    1946).
    """

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


def _wilson_interval(
    frequency: np.ndarray, counts: np.ndarray, effect: np.ndarray, degrees: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Ends of the interval; `effect` is the design effect.

    The quantile z moves from normal to Student's t as the design effect grows.
    """
    normal, student = -float(ndtri(0.025)), -stdtrit(degrees, 0.025)
    z = normal + (student - normal) * np.sqrt(1 - 1 / effect)
    count = counts / effect  # effective sample size
    centre = (frequency + z * z / (2 * count)) / (1 + z * z / count)
    half_width = (
        z
        * np.sqrt(frequency * (1 - frequency) / count + z * z / (4 * count**2))
        / (1 + z * z / count)
    )
    return (centre - half_width).clip(0, frequency), (centre + half_width).clip(frequency, 1)


def _to_floats(values: np.ndarray) -> tuple[float, ...]:
    return tuple(values.tolist())


def _to_ints(values: np.ndarray) -> tuple[int, ...]:
    return tuple(values.astype(int).tolist())
