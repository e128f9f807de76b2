"""F1 of boundaries: exact, and with a tolerance of one or two elements (sentences or lines).

A metric (metric.py) counts in each document, and computes scores from the sums of these counts over
documents. Confidence intervals also need the counts by position. A position is one comparison: here
the gap between an element and the one before it.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt

from neural.tasks.segmentation.boundary_encoding import Boundaries
from neural.tasks.segmentation.metric import (
    Counts,
    PositionCounts,
    SegmentationMetric,
    f1_score,
    make_gap_counts,
)

TOLERANCES = (0, 1, 2)
"""Maximum distances between a predicted boundary and the true one, in elements."""


class BoundaryF1(SegmentationMetric):
    """Harmonic mean of precision and recall of the boundaries inside documents: 1 is best.

    A predicted boundary matches a true one that is at most the tolerance away; every boundary is
    matched at most once, with as many matches as possible. The F1 is that of the boundaries of all
    documents together (micro); scores named `…_macro` are averages over documents. A document
    without true and predicted boundaries scores 1.
    """

    better: ClassVar[Literal["low", "high"]] = "high"

    def count_document(self, truth: Boundaries, prediction: Boundaries) -> Counts:
        """Counts [1, true boundaries, predicted ones, matches…, F1 of the document…].

        Matches and F1 have an entry per tolerance; the 1 adds up to the number of documents.
        """
        true, predicted = np.flatnonzero(truth), np.flatnonzero(prediction)
        matches = np.array(
            [count_matches(true, predicted, tolerance) for tolerance in TOLERANCES], float
        )
        document_f1 = f1_score(matches, len(true), len(predicted), empty_value=1.0)
        return np.concatenate([[1, len(true), len(predicted)], matches, document_f1])

    def count_document_positions(self, truth: Boundaries, prediction: Boundaries) -> PositionCounts:
        """Counts by position: boundaries at their gaps, matches at the gap of the true boundary.

        The F1 of a document is 2 · matches / (true + predicted boundaries), so a match contributes
        2 / (true + predicted) at its position. The 1 that counts the document is divided among the
        gaps with a boundary.
        """
        total = int(truth.sum()) + int(prediction.sum())
        if not total:
            return super().count_document_positions(truth, prediction)
        true, predicted = np.flatnonzero(truth), np.flatnonzero(prediction)
        matches = np.zeros((len(truth), len(TOLERANCES)))
        for column, tolerance in enumerate(TOLERANCES):
            matches[match_boundaries(true, predicted, tolerance), column] = 1
        true_and_predicted = np.stack([truth, prediction], axis=1).astype(float)
        shares = true_and_predicted.sum(axis=1, keepdims=True) / total
        return make_gap_counts(
            np.hstack([shares, true_and_predicted, matches, 2 * matches / total])
        )

    def scores(self, totals: Counts) -> dict[str, Counts]:
        """`boundary_f1`, `boundary_f1_within_1`, …; the same with `_macro`."""
        documents, true, predicted = totals[..., 0], totals[..., 1], totals[..., 2]
        matches, document_f1 = np.split(totals[..., 3:], 2, axis=-1)
        names = [
            "boundary_f1" + (f"_within_{tolerance}" if tolerance else "")
            for tolerance in TOLERANCES
        ]
        micro = {
            name: f1_score(matches[..., column], true, predicted, empty_value=1.0)
            for column, name in enumerate(names)
        }
        return micro | {
            f"{name}_macro": document_f1[..., column] / documents
            for column, name in enumerate(names)
        }


def count_matches(
    true: npt.NDArray[np.int64], predicted: npt.NDArray[np.int64], tolerance: int
) -> int:
    """Maximum number of matches of true and predicted positions at most `tolerance` apart.

    Both arrays are sorted; each position is matched at most once. Greedy matching from left to
    right is optimal: in any best matching, partners can be exchanged for the earliest possible ones
    without losing a match.
    """
    return len(match_boundaries(true, predicted, tolerance))


def match_boundaries(
    true: npt.NDArray[np.int64], predicted: npt.NDArray[np.int64], tolerance: int
) -> npt.NDArray[np.int64]:
    """Positions of the true boundaries that `count_matches` counts."""
    if tolerance == 0:
        return np.intersect1d(true, predicted, assume_unique=True)
    left, right = true.tolist(), predicted.tolist()
    i = j = 0
    matched: list[int] = []
    while i < len(left) and j < len(right):
        distance = left[i] - right[j]
        if distance > tolerance:
            j += 1
        elif distance < -tolerance:
            i += 1
        else:
            matched.append(left[i])
            i, j = i + 1, j + 1
    return np.array(matched, dtype=np.int64)
