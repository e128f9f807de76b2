"""Boundary similarity B: edit distance between segmentations (Fournier, 2013).

n_t, the number of elements that a near miss may span, is 2.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt

from neural.tasks.segmentation.boundary_encoding import Boundaries
from neural.tasks.segmentation.metric import AverageMetric, PositionCounts, make_gap_counts


class BoundarySimilarity(AverageMetric):
    """1 − (misses + near misses / 2) / (misses + near misses + matches), in boundaries: 1 is best.

    A near miss is a boundary one element beside the true one (n_t = 2); it is one edit of half the
    weight. A miss is in one of the two segmentations only. 1 if neither has a boundary.
    """

    better: ClassVar[Literal["low", "high"]] = "high"

    def score_document(self, truth: Boundaries, prediction: Boundaries) -> float:
        """Similarity by the fewest edits, that is with the maximum number of near misses."""
        unmatched = truth != prediction
        near_misses = count_near_misses(truth, unmatched)
        misses = int(unmatched.sum()) - 2 * near_misses
        total = misses + near_misses + int((truth & prediction).sum())
        return 1 - (misses + near_misses / 2) / total if total else 1.0

    def count_document_positions(self, truth: Boundaries, prediction: Boundaries) -> PositionCounts:
        """Matches and edits at their positions; a near miss counts half at either boundary."""
        unmatched = truth != prediction
        near_misses = np.zeros(len(truth))
        starts = find_near_misses(truth, unmatched)
        near_misses[starts] = near_misses[starts + 1] = 0.5
        matches = (truth & prediction).astype(float)
        compared = matches + near_misses + (unmatched & (near_misses == 0))
        if not compared.any():
            return super().count_document_positions(truth, prediction)
        return make_gap_counts(
            np.stack([matches + near_misses / 2, compared], axis=1) / compared.sum()
        )


def count_near_misses(truth: Boundaries, unmatched: Boundaries) -> int:
    """Maximum number of disjoint pairs of neighbours, one true and one predicted.

    `unmatched` is True where truth and prediction differ. A link joins a true boundary and a
    predicted one beside it. In a run of L links every second one is a pair: (L + 1) // 2.
    """
    return len(find_near_misses(truth, unmatched))


def find_near_misses(truth: Boundaries, unmatched: Boundaries) -> npt.NDArray[np.int64]:
    """Index of the first boundary of each near-miss pair."""
    links = unmatched[1:] & unmatched[:-1] & (truth[1:] != truth[:-1])
    edges = np.flatnonzero(np.diff(links, prepend=False, append=False))
    pairs = [np.arange(start, stop, 2) for start, stop in zip(edges[::2], edges[1::2], strict=True)]
    return np.concatenate([np.zeros(0, dtype=np.int64), *pairs])
