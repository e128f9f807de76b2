"""How far a score over documents would move with other documents of the same kind: the bootstrap (Efron, 1979).

Whole documents are drawn with replacement: elements of one document go right and wrong together, so drawing elements
would give intervals that are much too narrow.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

RESAMPLES = 2_000
"""How often a set of documents is drawn."""
AT_ONCE = 4_000_000
"""Numbers held in memory while drawing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A value with its 95 % interval; the ends are NaN where fewer than two documents say nothing about others."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        ends = f" ({self.low:.3f} … {self.high:.3f})" if math.isfinite(self.low) else ""
        return (f"{self.value:.3f}{ends}" if math.isfinite(self.value) else "none").replace("-", "−")


def draws(documents: int, *, resamples: int = RESAMPLES, seed: int = 0) -> Iterator[npt.NDArray[np.int64]]:
    """How often each document is in each drawn set, some sets at a time: arrays (sets, documents).

    The same seed draws the same sets: what is measured on them can be compared set by set.
    """
    if documents < 1 or resamples < 1:
        raise ValueError(f"at least one document and one resample are needed, got {documents} and {resamples}")
    generator = np.random.default_rng(seed)
    evenly = np.full(documents, 1 / documents)
    at_once = max(1, AT_ONCE // documents)
    for first in range(0, resamples, at_once):
        yield generator.multinomial(documents, evenly, size=min(at_once, resamples - first))


def resampled(
    counts: npt.NDArray[np.float64], *, resamples: int = RESAMPLES, seed: int = 0
) -> npt.NDArray[np.float64]:
    """Sums over each drawn set: rows (documents, …) become (resamples, …)."""
    found = [np.tensordot(sets, counts, axes=1) for sets in draws(len(counts), resamples=resamples, seed=seed)]
    return np.concatenate(found)


def interval(value: float, drawn: npt.NDArray[np.float64], documents: int) -> Interval:
    """The value on all documents with the middle 95 % of those on the drawn sets; sets of NaN do not count.

    Of few documents the plain percentiles are too narrow; they are taken as much further out as Student's t is wider
    than the normal distribution (Hesterberg, 2015, "expanded percentile").
    """
    from scipy.special import ndtr, stdtrit

    kept = drawn[np.isfinite(drawn)]
    if documents < 2 or len(kept) == 0:
        return Interval(value=value, low=math.nan, high=math.nan)
    tail = float(ndtr(stdtrit(documents - 1, 0.025) * math.sqrt(documents / (documents - 1))))
    low, high = np.quantile(kept, (tail, 1 - tail))
    return Interval(value=value, low=float(low), high=float(high))
