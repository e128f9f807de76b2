"""WindowDiff: does a window hold as many boundaries as it should (Pevzner and Hearst, 2002)."""

from __future__ import annotations

from typing import ClassVar, Literal

from neural.tasks.cutting.masses import Boundaries
from neural.tasks.cutting.metric import AverageMetric
from neural.tasks.cutting.metrics._probes import boundaries_between, probe_distance


class WindowDiff(AverageMetric):
    """Share of the windows that hold another number of boundaries than in truth: 0 is best.

    The windows are those of Pk, n − k of them; it is never below Pk, as a near miss and a boundary too many both count.
    """

    better: ClassVar[Literal["low", "high"]] = "low"

    def value(self, truth: Boundaries, prediction: Boundaries) -> float:
        """0 for a single element: there is nothing to be wrong about."""
        if len(truth) == 1:
            return 0.0
        k = probe_distance(truth)
        return float((boundaries_between(truth, k) != boundaries_between(prediction, k)).mean())
