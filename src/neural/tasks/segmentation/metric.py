"""Base classes of segmentation metrics: additive counts, and scores computed from their sums.

A metric first counts (for example true, predicted and matched boundaries), and computes its scores
from the sums of these counts over documents. A position is one comparison of the metric: a window
of Pk, or the gap between two elements (sentences or lines); the counts of a document are sums over
its positions.

So the score without one document is computed from a difference of sums, without counting again.
Confidence intervals need that for every document and every source, a text that several documents
contain parts of (stats/jackknife.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from neural.language.declaration import RegistryEntry
from neural.tasks.segmentation.boundary_encoding import Boundaries, check_pair

Counts = npt.NDArray[np.float64]
"""Array of counts, or of scores computed from them."""


class PositionCounts(NamedTuple):
    """Counts of one document by position, and the elements each position depends on."""

    rows: Counts
    """(positions, counts); the sum over positions is the result of `count_document`."""
    first: npt.NDArray[np.int64]
    last: npt.NDArray[np.int64]
    """First and last element that each position depends on, (positions,)."""


class SegmentationMetric(RegistryEntry):
    """Base class of segmentation metrics; every score lies between 0 and 1.

    A `RegistryEntry` is a class that users name in lower case with its arguments, such as
    `boundary_f1(tolerance=1)`; its `repr` is that text.
    """

    better: ClassVar[Literal["low", "high"]]
    """Whether low or high scores are better."""
    input_kind: ClassVar[Literal["boundaries", "labels"]] = "boundaries"
    """What is compared: bool arrays of boundaries, or integer labels."""

    def count_documents(
        self, truths: Sequence[npt.ArrayLike], predictions: Sequence[npt.ArrayLike]
    ) -> Counts:
        """Counts of each document, (documents, counts)."""
        return np.stack(
            [
                self.count_document(*check_pair(*pair))
                for pair in zip(truths, predictions, strict=True)
            ]
        )

    def count_document(self, truth: Boundaries, prediction: Boundaries) -> Counts:
        """Counts of one document, (counts,). Both arrays are checked and have equal length."""
        raise NotImplementedError

    def count_positions(
        self, truths: Sequence[npt.ArrayLike], predictions: Sequence[npt.ArrayLike]
    ) -> list[PositionCounts]:
        """Counts of each document by position."""
        pairs = zip(truths, predictions, strict=True)
        return [self.count_document_positions(*check_pair(*pair)) for pair in pairs]

    def count_document_positions(self, truth: Boundaries, prediction: Boundaries) -> PositionCounts:
        """Counts of one document by position.

        The default spreads them evenly over the elements; a metric overrides it if it knows where
        they come from.
        """
        return spread_evenly(self.count_document(truth, prediction), len(truth))

    def scores(self, totals: Counts) -> dict[str, Counts]:
        """Scores by name, computed from sums of counts, (…, counts) → (…).

        The first one is the main score, which has the name of the metric.
        """
        raise NotImplementedError

    def score(self, truth: npt.ArrayLike, prediction: npt.ArrayLike) -> float:
        """The main score of one document."""
        return float(
            next(iter(self.scores(self.count_documents([truth], [prediction])[0]).values()))
        )


class AverageMetric(SegmentationMetric):
    """A metric of single documents that is averaged over documents."""

    def score_document(self, truth: Boundaries, prediction: Boundaries) -> float:
        """Score of one document."""
        raise NotImplementedError

    def count_document(self, truth: Boundaries, prediction: Boundaries) -> Counts:
        """[score, 1]; the 1 adds up to the number of documents."""
        return np.array([self.score_document(truth, prediction), 1.0])

    def scores(self, totals: Counts) -> dict[str, Counts]:
        """The average score, under the metric's name."""
        return {repr(self).partition("(")[0]: totals[..., 0] / totals[..., 1]}


def spread_evenly(row: Counts, elements: int) -> PositionCounts:
    """Distribute the counts of a document, (counts,), evenly over its elements."""
    positions = np.arange(elements)
    return PositionCounts(np.tile(row / elements, (elements, 1)), positions, positions)


def make_gap_counts(rows: Counts) -> PositionCounts:
    """Position counts of a metric whose positions are gaps.

    Row i of `rows` (elements, counts) is the gap before element i, which depends on the elements
    i − 1 and i.
    """
    positions = np.arange(len(rows))
    return PositionCounts(rows, np.maximum(positions - 1, 0), positions)


def f1_score(hits: Any, true: Any, predicted: Any, *, empty_value: float) -> Counts:
    """F1 = 2·hits / (true + predicted), elementwise; `empty_value` where the denominator is 0."""
    total = np.asarray(true + predicted, float)
    return np.where(total > 0, 2 * hits / np.where(total > 0, total, 1), empty_value)
