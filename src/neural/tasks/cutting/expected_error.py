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

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from neural.tasks.cutting.bins import equal_mass_edges, equal_width_edges, gathered
from neural.tasks.cutting.resample import RESAMPLES, Interval, interval, resampled

BINS = 15
SIMULATIONS = 1000
MOST_DRAWN = 200_000_000
"""Random numbers of a simulation; of very many elements there are fewer simulations, which then differ less."""


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
    """The three, each with a 95 % interval by resampling documents."""

    plain: Interval
    equal_mass: Interval
    debiased: Interval


class Distances(NamedTuple):
    """All that the three are made of, as `gathered` gives it: per document, or per drawn set of documents."""

    wide: np.ndarray
    """Of bins of equal width."""
    even: np.ndarray
    """Of bins of equal mass."""

    @classmethod
    def of(cls, p: np.ndarray, hits: np.ndarray, documents: np.ndarray, *, bins: int = BINS) -> Distances:
        """Of probabilities and what came true (0 or 1), of the elements of documents numbered from 0."""
        edges = equal_width_edges(bins), equal_mass_edges(p, bins)
        return cls(*(gathered(one, p, hits, documents) for one in edges))

    def errors(self, drawn: Distances) -> ExpectedErrors:
        """With intervals from the same of drawn sets.

        A resample adds chance to chance, so resamples lie above the value by as much as it lies above the truth. The
        interval is theirs, moved back so that their mean is the value, and cut off at 0. It holds the true error about
        as often as it should; but of a perfect model only the debiased one does, as the others are never 0.
        """

        def error(distance: Callable[[np.ndarray], np.ndarray], sums: np.ndarray, drawn: np.ndarray) -> Interval:
            value, resamples = float(distance(sums.sum(axis=0))), distance(drawn)
            return interval(value, resamples - resamples.mean() + value, len(sums))

        return ExpectedErrors(
            plain=_at_least_0(error(mean_distance, self.wide, drawn.wide)),
            equal_mass=_at_least_0(error(mean_distance, self.even, drawn.even)),
            debiased=_at_least_0(error(squared_distance, self.even, drawn.even), root=True),
        )


def expected_errors(
    p: np.ndarray, hits: np.ndarray, documents: np.ndarray, *, bins: int = BINS, resamples: int = RESAMPLES,
    seed: int = 0,
) -> ExpectedErrors:  # fmt: skip
    """Of probabilities and what came true (0 or 1), of the elements of documents numbered from 0."""
    whole = Distances.of(p, hits, documents, bins=bins)
    return whole.errors(Distances(*resampled_together(whole, resamples=resamples, seed=seed)))


def resampled_together(
    tables: Sequence[np.ndarray], *, resamples: int = RESAMPLES, seed: int = 0
) -> list[np.ndarray]:
    """Several tables (documents, …), each summed over the same drawn sets; drawing once is what takes the time."""
    flat = [one.reshape(len(one), -1) for one in tables]
    ends = np.cumsum([one.shape[1] for one in flat])[:-1]
    drawn = np.split(resampled(np.concatenate(flat, axis=1), resamples=resamples, seed=seed), ends, axis=1)
    return [one.reshape(-1, *table.shape[1:]) for one, table in zip(drawn, tables, strict=True)]


def of_a_perfect_model(
    p: np.ndarray, *, bins: int = BINS, simulations: int = SIMULATIONS, seed: int = 0
) -> Interval:
    """What the plain error would be if every probability were exactly right: the mean and the middle 90 %.

    Elements come true independently of each other here; where they do not, a perfect model shows more.
    """
    which = np.searchsorted(equal_width_edges(bins), p, side="right")
    order = np.argsort(which, kind="stable")
    p, which = p[order], which[order]
    starts = np.flatnonzero(np.diff(which, prepend=-1))
    wanted = np.add.reduceat(p, starts)
    random = np.random.default_rng(seed)
    found = np.empty(max(20, min(simulations, MOST_DRAWN // len(p))))
    for at in range(len(found)):
        came = np.add.reduceat(random.random(len(p)) < p, starts, dtype=np.int64)
        found[at] = np.abs(came - wanted).sum() / len(p)
    low, high = np.quantile(found, (0.05, 0.95))
    return Interval(value=float(found.mean()), low=float(low), high=float(high))


def _at_least_0(one: Interval, *, root: bool = False) -> Interval:
    ends = np.maximum([one.value, one.low, one.high], 0)   # NaN stays NaN
    value, low, high = (np.sqrt(ends) if root else ends).tolist()
    return Interval(value=value, low=low, high=high)
