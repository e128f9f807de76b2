"""Expected calibration error: how far probabilities lie from what came true, on average.

| name       | what it is |
|------------|---|
| plain      | fifteen bins of equal width; the mean distance between probability and share that came true, in each bin (Naeini et al., 2015) |
| equal_mass | the same with as many elements in every bin: none is nearly empty, none holds nearly all |
| debiased   | root of the mean squared distance over bins of equal mass, minus what chance alone adds to it (Bröcker, 2012; Kumar et al., 2019) |

All are probabilities: 0 is perfect, 1 always sure and always wrong. The first two are above 0 for a perfect model as
well, by chance, and the more so the fewer elements there are; `of_a_perfect_model` says by how much.
"""  # noqa: E501

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from neural.tasks.cutting.bins import equal_mass_edges, equal_width_edges, gathered
from neural.tasks.cutting.jackknife import Estimate, Grouping, Ids, Interval, Sums, estimates

BINS = 15
SIMULATIONS = 1000
MOST_DRAWN = 200_000_000
"""Random numbers of a simulation; of very many elements there are fewer simulations, which then differ less."""
DEGREES_PER_CLUSTER = 3
"""Of freedom: how well the clusters' variances are known together. One would be right if all bins varied together, as
many as there are bins if each did by itself; three holds the rate of false alarms (tests/validity)."""

MAX_WIDENING = 1.25
"""Of the upper end of a debiased error that is hardly above 0."""
Pairs = tuple[Ids, Ids] | None
"""The two sources that each element depends on, where documents share sources."""


def mean_distance(sums: np.ndarray) -> np.ndarray:
    """Plain and equal-mass: (…, 3, bins) as `gathered` gives, to (…)."""
    count, p, hits = np.moveaxis(sums, -2, 0)
    return np.abs(hits - p).sum(axis=-1) / count.sum(axis=-1)


def squared_distance(sums: np.ndarray) -> np.ndarray:
    """Without what chance adds, so below 0 as often as above for a perfect model: (…, 3, bins) to (…)."""
    count, p, hits = np.moveaxis(sums, -2, 0)
    some = np.maximum(count, 1)
    p, share = p / some, hits / some
    # of one element, the variance of its bin cannot be seen; the model's own word stands for it
    chance = np.where(count > 1, share * (1 - share) / np.maximum(count - 1, 1), p * (1 - p))
    return (count * ((share - p) ** 2 - chance)).sum(axis=-1) / count.sum(axis=-1)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedErrors:
    """The three, each with a 95 % interval over documents and the sources they share.

    The interval lies around the value, and is cut off at 0. The first two errors are too high by
    chance, so theirs holds the true error less often the smaller that is, and hardly ever an error
    of 0; that of the debiased one does.
    """

    plain: Interval
    equal_mass: Interval
    debiased: Interval


def expected_errors(
    p: np.ndarray, hits: np.ndarray, documents: np.ndarray, *, sources: Pairs = None, bins: int = BINS
) -> ExpectedErrors:
    """Of probabilities and what came true (0 or 1), of the elements of documents numbered from 0."""
    grouping = Grouping(documents, int(documents.max()) + 1, sources)
    wide = _gathered(grouping, equal_width_edges(bins), p, hits)
    even = _gathered(grouping, equal_mass_edges(p, bins), p, hits)
    return ExpectedErrors(
        plain=_at_least_0(_estimate(wide, mean_distance).interval()),
        equal_mass=_at_least_0(_estimate(even, mean_distance).interval()),
        debiased=_root(_estimate(even, squared_distance).interval()),
    )


def _gathered(grouping: Grouping, edges: np.ndarray, p: np.ndarray, hits: np.ndarray) -> Sums:
    def add(members: Ids, groups: Ids, count: int) -> np.ndarray:
        return gathered(edges, p[members], hits[members], groups, count)

    return grouping.sums(add)


def _estimate(sums: Sums, distance: Callable[[np.ndarray], np.ndarray]) -> Estimate:
    return estimates(sums, lambda totals: {"error": distance(totals)})["error"]


def of_a_perfect_model(
    p: np.ndarray, hits: np.ndarray | None = None, documents: np.ndarray | None = None, *, sources: Pairs = None,
    bins: int = BINS, simulations: int = SIMULATIONS, seed: int = 0,
) -> Interval:  # fmt: skip
    """What the plain error would be if every probability were exactly right: the mean and the middle 90 %.

    Elements of one document, and of one source, come true together: how much they do is seen in what came true, `hits`.
    Their residuals (what came true less its probability, less the bin's mean of that), summed by document and bin, are
    drawn with random signs and sizes; a bin never varies less than independent elements would. Without `hits`, or
    with one document, elements are drawn independently, and a perfect model shows more where they are not.
    """
    random = np.random.default_rng(seed)
    if hits is None or documents is None or documents.max() == 0:
        errors = _independent_errors(p, bins, simulations, random)
    else:
        errors = _clustered_errors(p, hits, documents, sources, bins, simulations, random)
    low, high = np.quantile(errors, (0.05, 0.95))
    return Interval(value=float(errors.mean()), low=float(low), high=float(high))


def _independent_errors(
    p: np.ndarray, bins: int, simulations: int, random: np.random.Generator
) -> np.ndarray:
    which = np.searchsorted(equal_width_edges(bins), p, side="right")
    order = np.argsort(which, kind="stable")
    p, which = p[order], which[order]
    starts = np.flatnonzero(np.diff(which, prepend=-1))
    wanted = np.add.reduceat(p, starts)
    errors = np.empty(max(20, min(simulations, MOST_DRAWN // len(p))))
    for at in range(len(errors)):
        came = np.add.reduceat(random.random(len(p)) < p, starts, dtype=np.int64)
        errors[at] = np.abs(came - wanted).sum() / len(p)
    return errors


def _clustered_errors(
    p: np.ndarray, hits: np.ndarray, documents: np.ndarray, sources: Pairs, bins: int, simulations: int,
    random: np.random.Generator,
) -> np.ndarray:  # fmt: skip
    edges = equal_width_edges(bins)
    count = int(documents.max()) + 1
    sums = _gathered(Grouping(documents, count, sources), edges, p, hits)
    total = sums.documents.sum(axis=0)
    mean = (total[2] - total[1]) / np.maximum(total[0], 1)

    def residuals(groups: np.ndarray) -> np.ndarray:
        """(groups, bins), around the bin's mean: being off everywhere is not what is looked for here."""
        return groups[:, 2] - groups[:, 1] - mean * groups[:, 0]

    by_document = residuals(sums.documents) / _remains(sums.documents)
    terms = [by_document]
    if sums.sources is not None and sums.parts is not None:
        of_sources = sums.sources.sum(axis=0)
        by_source = residuals(of_sources) / _remains(of_sources)
        chance = _within(residuals(sums.parts.sum(axis=0)), sums.owners)
        # chance within parts is in both terms; it is taken from the smaller one
        smaller, larger = sorted((by_document, by_source), key=lambda term: float((term**2).sum()))
        beyond = max(0.0, 1 - chance / max(float((smaller**2).sum()), 1e-300))
        terms = [larger, np.sqrt(beyond) * smaller]
    drawn = sum(random.standard_normal((simulations, len(term))) @ term for term in terms)
    variance = np.sum([(term**2).sum(axis=0) for term in terms], axis=0)
    alone = np.bincount(np.searchsorted(edges, p, side="right"), p * (1 - p), minlength=bins)
    missing = np.sqrt(np.maximum(alone - variance, 0))
    drawn += random.standard_normal((simulations, bins)) * missing
    degrees = DEGREES_PER_CLUSTER * len(terms[0])
    drawn *= np.sqrt(degrees / random.chisquare(degrees, size=(simulations, 1)))
    return np.abs(drawn).sum(axis=1) / len(p)


def _remains(groups: np.ndarray) -> np.ndarray:
    """Of every bin: what is left of the standard deviation around a mean of the same groups; at least half."""
    counts = groups[:, 0]
    lost = (counts**2).sum(axis=0) / np.maximum(counts.sum(axis=0), 1) ** 2
    return np.sqrt(np.maximum(1 - lost, 0.25))


def _within(by_part: np.ndarray, owners: Ids) -> float:
    """Variance of all bins together that is chance within the parts which documents have of a source."""
    count = np.bincount(owners)
    variance = 0.0
    for column in by_part.T:
        mean = np.bincount(owners, column) / count
        squares = np.bincount(owners, (column - mean[owners]) ** 2)
        variance += float((squares * count / np.maximum(count - 1, 1)).sum())
    return variance


def _at_least_0(one: Interval) -> Interval:
    value, low, high = np.maximum([one.value, one.low, one.high], 0).tolist()   # NaN stays NaN
    return Interval(value=value, low=low, high=high)


def _root(square: Interval) -> Interval:
    """Of a squared error, which may be below 0 by chance.

    The upper end is as far above the root as the square's is to first order: its own root is too low too often.
    """
    value, low, high = np.sqrt(np.maximum([square.value, square.low, square.high], 0)).tolist()
    if value > 0:
        high = min(value + (square.high - square.value) / (2 * value), MAX_WIDENING * high)
    return Interval(value=value, low=low, high=high)
