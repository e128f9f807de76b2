"""The window that Pk and WindowDiff slide over a document."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from neural.tasks.cutting.masses import Boundaries
from neural.tasks.cutting.metric import AverageMetric, Places


class ProbeMetric(AverageMetric):
    """A metric that is the share of wrong probes."""

    def wrong(self, truth: Boundaries, prediction: Boundaries, distance: int) -> npt.NDArray[np.bool_]:
        """Which probes, so many elements wide, are wrong."""
        raise NotImplementedError

    def value(self, truth: Boundaries, prediction: Boundaries) -> float:
        """0 for a single element: there is nothing to be wrong about."""
        if len(truth) == 1:
            return 0.0
        return float(self.wrong(truth, prediction, probe_distance(truth)).mean())

    def row_by_place(self, truth: Boundaries, prediction: Boundaries) -> Places:
        """Every probe is a place."""
        if len(truth) == 1:
            return super().row_by_place(truth, prediction)
        distance = probe_distance(truth)
        wrong = self.wrong(truth, prediction, distance)
        starts, count = np.arange(len(wrong)), len(wrong)
        rows = np.stack([wrong / count, np.full(count, 1 / count)], axis=1)
        return Places(rows, starts, starts + distance)


def probe_distance(truth: Boundaries) -> int:
    """k: half the mean length of a true part, rounded (halves to even), at least 2, at most from end to end."""
    parts = 1 + int(truth.sum())
    return min(max(2, round(len(truth) / (2 * parts))), len(truth) - 1)


def boundaries_between(boundaries: Boundaries, distance: int) -> npt.NDArray[np.int64]:
    """How many boundaries lie between element i and element i + distance, for each of the n − distance probes."""
    before = np.cumsum(boundaries)
    return before[distance:] - before[: len(before) - distance]
