"""Base class of Pk and WindowDiff, which slide a probe over a document.

A probe is a pair of elements (sentences or lines) at a fixed distance k; it is wrong if prediction
and truth disagree about the boundaries between the two. A document of n elements has n − k probes.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from neural.tasks.segmentation.boundary_encoding import Boundaries
from neural.tasks.segmentation.metric import AverageMetric, PositionCounts


class ProbeMetric(AverageMetric):
    """Fraction of wrong probes; 0 is best."""

    def find_wrong_probes(
        self, truth: Boundaries, prediction: Boundaries, distance: int
    ) -> npt.NDArray[np.bool_]:
        """True where the probe from element i to i + distance is wrong, (n − distance,)."""
        raise NotImplementedError

    def score_document(self, truth: Boundaries, prediction: Boundaries) -> float:
        """Fraction of wrong probes; 0 for a single element."""
        if len(truth) == 1:
            return 0.0
        return float(
            self.find_wrong_probes(truth, prediction, compute_probe_distance(truth)).mean()
        )

    def count_document_positions(self, truth: Boundaries, prediction: Boundaries) -> PositionCounts:
        """Counts by position; each probe is one position and gets 1 / (number of probes).

        So the sum over a document is [score, 1], as in `count_document`.
        """
        if len(truth) == 1:
            return super().count_document_positions(truth, prediction)
        distance = compute_probe_distance(truth)
        wrong = self.find_wrong_probes(truth, prediction, distance)
        starts, count = np.arange(len(wrong)), len(wrong)
        rows = np.stack([wrong / count, np.full(count, 1 / count)], axis=1)
        return PositionCounts(rows, starts, starts + distance)


def compute_probe_distance(truth: Boundaries) -> int:
    """k: half the mean true segment length, rounded; at least 2 and at most n − 1."""
    segments = 1 + int(truth.sum())
    return min(max(2, round(len(truth) / (2 * segments))), len(truth) - 1)


def count_boundaries_between(boundaries: Boundaries, distance: int) -> npt.NDArray[np.int64]:
    """Number of boundaries between elements i and i + distance, (n − distance,)."""
    cumulative = np.cumsum(boundaries)
    return cumulative[distance:] - cumulative[: len(cumulative) - distance]
