"""Base classes of segmentation metrics: additive counts, and scores computed from their sums.

Counts add up over documents and over positions in a document. A position is one comparison of the
metric: a window of Pk, or the gap between two elements (sentences or lines). So the score without
one document, or without one source (a text that several documents contain parts of; see the
jackknife in confidence_intervals.py), is computed from a difference of sums, without another pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from neural.language.declaration import LowercaseDeclaration
from neural.tasks.segmentation.boundary_encoding import Boundaries, check_pair

Counts = npt.NDArray[np.float64]
"""Array of counts, or of scores computed from them."""


class PositionCounts(NamedTuple):
    """Counts of one document by position, and the elements each position depends on."""

    rows: Counts
    """(positions, counts); the sum over positions is the document's row."""
    first: npt.NDArray[np.int64]
    last: npt.NDArray[np.int64]
    """First and last element that each position depends on, (positions,)."""


class SegmentationMetric(LowercaseDeclaration):
    """Base class of segmentation metrics; every score lies between 0 and 1.

    A `LowercaseDeclaration` is a registry entry that users write in lower case with its arguments,
    such as `boundary_f1(tolerance=1)`; its `repr` is that text.
    """

    better: ClassVar[Literal["low", "high"]]
    """Whether low or high scores are better."""
    input_kind: ClassVar[Literal["boundaries", "labels"]] = "boundaries"
    """What is compared: bool arrays of boundaries, or integer labels."""

    def count_documents(
        self, truths: Sequence[npt.ArrayLike], predictions: Sequence[npt.ArrayLike]
    ) -> Counts:
        """One row of counts per document; rows add up over documents."""
        return np.stack(
            [
                self.count_document(*check_pair(*pair))
                for pair in zip(truths, predictions, strict=True)
            ]
        )

    def count_document(self, truth: Boundaries, prediction: Boundaries) -> Counts:
        """Counts of one document. Both arrays are checked and have equal length."""
        raise NotImplementedError

    def count_positions(
        self, truths: Sequence[npt.ArrayLike], predictions: Sequence[npt.ArrayLike]
    ) -> list[PositionCounts]:
        """Counts of each document by position."""
        pairs = zip(truths, predictions, strict=True)
        return [self.count_document_positions(*check_pair(*pair)) for pair in pairs]

    def count_document_positions(self, truth: Boundaries, prediction: Boundaries) -> PositionCounts:
        """Counts of one document by position; spread evenly unless a metric overrides this."""
        return spread_evenly(self.count_document(truth, prediction), len(truth))

    def scores(self, totals: Counts) -> dict[str, Counts]:
        """Scores by name from sums of rows, (…, counts) → (…). The first is the metric itself."""
        raise NotImplementedError

    def score(self, truth: npt.ArrayLike, prediction: npt.ArrayLike) -> float:
        """The metric's first score on one document."""
        return float(
            next(iter(self.scores(self.count_documents([truth], [prediction])[0]).values()))
        )


class AverageMetric(SegmentationMetric):
    """A metric of single documents that is averaged over documents."""

    def score_document(self, truth: Boundaries, prediction: Boundaries) -> float:
        """Score of one document."""
        raise NotImplementedError

    def count_document(self, truth: Boundaries, prediction: Boundaries) -> Counts:
        """The score, and 1 for the number of documents."""
        return np.array([self.score_document(truth, prediction), 1.0])

    def scores(self, totals: Counts) -> dict[str, Counts]:
        """The average, under the metric's name."""
        return {repr(self).partition("(")[0]: totals[..., 0] / totals[..., 1]}


def spread_evenly(row: Counts, elements: int) -> PositionCounts:
    """Distribute a document's row evenly over its elements."""
    positions = np.arange(elements)
    return PositionCounts(np.tile(row / elements, (elements, 1)), positions, positions)


def make_gap_counts(rows: Counts) -> PositionCounts:
    """Counts of decisions at gaps: row i is the gap before element i and depends on i − 1 and i."""
    positions = np.arange(len(rows))
    return PositionCounts(rows, np.maximum(positions - 1, 0), positions)


def f1_score(hits: Any, true: Any, predicted: Any, *, empty_value: float) -> Counts:
    """F1 = 2·hits / (true + predicted), elementwise; `empty_value` where the denominator is 0."""
    total = np.asarray(true + predicted, float)
    return np.where(total > 0, 2 * hits / np.where(total > 0, total, 1), empty_value)
