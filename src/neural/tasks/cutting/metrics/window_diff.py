"""WindowDiff: does a window hold as many boundaries as it should (Pevzner and Hearst, 2002)."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt

from neural.tasks.cutting.masses import Boundaries
from neural.tasks.cutting.metrics._probes import ProbeMetric, boundaries_between


class WindowDiff(ProbeMetric):
    """Share of the windows that hold another number of boundaries than in truth: 0 is best.

    The windows are those of Pk, n − k of them; it is never below Pk, as a near miss and a boundary too many both count.
    """

    better: ClassVar[Literal["low", "high"]] = "low"

    def wrong(self, truth: Boundaries, prediction: Boundaries, distance: int) -> npt.NDArray[np.bool_]:
        """Another number of boundaries."""
        return boundaries_between(truth, distance) != boundaries_between(prediction, distance)
