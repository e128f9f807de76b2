"""What every metric promises: counts that add up over documents, and over places in a document; scores from their sums.

So a score without any of the documents, or without what comes from one source, is a difference of sums and not another
pass over the documents.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from neural.language.declaration import Named
from neural.tasks.cutting.masses import Boundaries, checked_pair

Counts = npt.NDArray[np.float64]


class Places(NamedTuple):
    """The counts of one document, place by place, and which elements each place depends on."""

    rows: Counts
    """(places, numbers); the sum is the document's row."""
    first: npt.NDArray[np.int64]
    last: npt.NDArray[np.int64]
    """The first and the last element, (places,)."""


class Metric(Named):
    """A number that says how well parts were found; every score lies between 0 and 1."""

    better: ClassVar[Literal["low", "high"]]
    """Which end of the scale is the good one."""
    reads: ClassVar[Literal["boundaries", "labels"]] = "boundaries"
    """What is compared: bool arrays of boundaries, or whole numbers per element."""

    def counts(self, truths: Sequence[npt.ArrayLike], predictions: Sequence[npt.ArrayLike]) -> Counts:
        """A row of numbers per document, which add up over documents."""
        return np.stack([self.row(*checked_pair(*pair)) for pair in zip(truths, predictions, strict=True)])

    def row(self, truth: Boundaries, prediction: Boundaries) -> Counts:
        """The numbers of one document; both are checked and of one length."""
        raise NotImplementedError

    def places(
        self, truths: Sequence[npt.ArrayLike], predictions: Sequence[npt.ArrayLike]
    ) -> list[Places]:
        """The same rows, place by place: what of them comes from which elements."""
        pairs = zip(truths, predictions, strict=True)
        return [self.row_by_place(*checked_pair(*pair)) for pair in pairs]

    def row_by_place(self, truth: Boundaries, prediction: Boundaries) -> Places:
        """The numbers of one document by place; spread evenly where a metric does not say it better."""
        return spread_evenly(self.row(truth, prediction), len(truth))

    def scores(self, totals: Counts) -> dict[str, Counts]:
        """The scores by name from sums of rows, (…, numbers) to (…); the first is the metric itself."""
        raise NotImplementedError

    def of(self, truth: npt.ArrayLike, prediction: npt.ArrayLike) -> float:
        """The metric of one document."""
        return float(next(iter(self.scores(self.counts([truth], [prediction])[0]).values())))


class AverageMetric(Metric):
    """A metric that is defined for one document; of several, the plain average."""

    def value(self, truth: Boundaries, prediction: Boundaries) -> float:
        """Of one document."""
        raise NotImplementedError

    def row(self, truth: Boundaries, prediction: Boundaries) -> Counts:
        """The value, and that it is one."""
        return np.array([self.value(truth, prediction), 1.0])

    def scores(self, totals: Counts) -> dict[str, Counts]:
        """The average, under the metric's own name."""
        return {repr(self).partition("(")[0]: totals[..., 0] / totals[..., 1]}


def spread_evenly(row: Counts, elements: int) -> Places:
    """Every element has the same share of a document's row."""
    every = np.arange(elements)
    return Places(np.tile(row / elements, (elements, 1)), every, every)


def gaps(rows: Counts) -> Places:
    """Rows of elements that are asked whether a part begins there: they depend on the one before, too."""
    every = np.arange(len(rows))
    return Places(rows, np.maximum(every - 1, 0), every)


def harmonic(hits: Any, true: Any, predicted: Any, *, of_nothing: float) -> Counts:
    """F1 = 2·hits / (true + predicted), element by element; `of_nothing` where there is neither."""
    whole = np.asarray(true + predicted, float)
    return np.where(whole > 0, 2 * hits / np.where(whole > 0, whole, 1), of_nothing)
