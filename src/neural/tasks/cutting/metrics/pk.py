"""Pk: do two elements a little apart belong together or not (Beeferman, Berger and Lafferty, 1999)."""

from __future__ import annotations

from typing import ClassVar, Literal

from neural.tasks.cutting.masses import Boundaries
from neural.tasks.cutting.metric import AverageMetric
from neural.tasks.cutting.metrics._probes import boundaries_between, probe_distance


class Pk(AverageMetric):
    """Share of the pairs k apart of which truth and prediction disagree whether a boundary lies between: 0 is best.

    k is half the mean length of a true part, rounded, at least 2; there are n − k pairs. Always saying "no boundary"
    scores about 0.45 on most sets.
    """

    better: ClassVar[Literal["low", "high"]] = "low"

    def value(self, truth: Boundaries, prediction: Boundaries) -> float:
        """0 for a single element: there is nothing to be wrong about."""
        if len(truth) == 1:
            return 0.0
        k = probe_distance(truth)
        apart = boundaries_between(truth, k) > 0
        return float((apart != (boundaries_between(prediction, k) > 0)).mean())
