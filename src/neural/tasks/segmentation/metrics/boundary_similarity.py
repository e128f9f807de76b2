"""Boundary similarity B: edit distance between segmentations (Fournier, 2013).

A near miss is a pair of a true and a predicted boundary at neighbouring elements (sentences or
lines). Fournier's parameter n_t, the number of elements that a near miss may span, is 2.

A metric (metric.py) counts in each document; here the counts are [B, 1], and their sums give the
mean B. Confidence intervals also need the counts by position, here the gap before each element.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt

from neural.tasks.segmentation.boundary_encoding import Boundaries
from neural.tasks.segmentation.metric import AverageMetric, PositionCounts, make_gap_counts


class BoundarySimilarity(AverageMetric):
    """B = 1 − (misses + near misses / 2) / (misses + near misses + matches): 1 is best.

    A match is a boundary in both segmentations. A miss is a boundary in one of them only that is
    not part of a near miss. B is 1 if neither segmentation has a boundary.
    """

    better: ClassVar[Literal["low", "high"]] = "high"

    def score_document(self, truth: Boundaries, prediction: Boundaries) -> float:
        """B with as many near misses as possible, which is the smallest edit distance."""
        unmatched = truth != prediction
        near_misses = count_near_misses(truth, unmatched)
        misses = int(unmatched.sum()) - 2 * near_misses
        total = misses + near_misses + int((truth & prediction).sum())
        return 1 - (misses + near_misses / 2) / total if total else 1.0

    def count_document_positions(self, truth: Boundaries, prediction: Boundaries) -> PositionCounts:
        """Counts by position; a near miss counts half at each of its two boundaries.

        The sum over a document is [B, 1], as in `count_document`.
        """
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
    """Maximum number of near misses, each boundary being part of at most one.

    `unmatched` is True where truth and prediction differ.
    """
    return len(find_near_misses(truth, unmatched))


def find_near_misses(truth: Boundaries, unmatched: Boundaries) -> npt.NDArray[np.int64]:
    """Index of the first boundary of each near miss; `unmatched` is as in `count_near_misses`.

    A link joins an unmatched true boundary and an unmatched predicted one beside it. In a run of
    consecutive links, every second one is a near miss, because they must not share boundaries.
    """
    links = unmatched[1:] & unmatched[:-1] & (truth[1:] != truth[:-1])
    edges = np.flatnonzero(np.diff(links, prepend=False, append=False))
    pairs = [np.arange(start, stop, 2) for start, stop in zip(edges[::2], edges[1::2], strict=True)]
    return np.concatenate([np.zeros(0, dtype=np.int64), *pairs])
