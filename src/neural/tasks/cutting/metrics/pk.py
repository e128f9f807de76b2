"""Pk: do two elements a little apart belong together or not (Beeferman, Berger and Lafferty, 1999)."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt

from neural.tasks.cutting.masses import Boundaries
from neural.tasks.cutting.metrics._probes import ProbeMetric, boundaries_between


class Pk(ProbeMetric):
    """Share of the pairs k apart of which truth and prediction disagree whether a boundary lies between: 0 is best.

    k is half the mean length of a true part, rounded, at least 2; there are n − k pairs. Always saying "no boundary"
    scores about 0.45 on most sets.
    """

    better: ClassVar[Literal["low", "high"]] = "low"

    def wrong(self, truth: Boundaries, prediction: Boundaries, distance: int) -> npt.NDArray[np.bool_]:
        """Together in one and apart in the other."""
        apart = boundaries_between(truth, distance) > 0
        return apart != (boundaries_between(prediction, distance) > 0)
