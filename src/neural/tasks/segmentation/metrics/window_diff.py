"""WindowDiff: does each window have the true number of boundaries (Pevzner and Hearst, 2002)?

A window goes from one element (sentence or line) to the one at distance k; the base class
calls it a probe.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt

from neural.tasks.segmentation.boundary_encoding import Boundaries
from neural.tasks.segmentation.metrics._probes import ProbeMetric, count_boundaries_between


class WindowDiff(ProbeMetric):
    """Fraction of windows with a wrong number of boundaries: 0 is best.

    The windows are the pairs of Pk: k is half the mean true segment length, and a document of n
    elements has n − k windows. It is never below Pk, which only asks whether a window has any
    boundary.
    """

    better: ClassVar[Literal["low", "high"]] = "low"

    def find_wrong_probes(
        self, truth: Boundaries, prediction: Boundaries, distance: int
    ) -> npt.NDArray[np.bool_]:
        """True for windows where the numbers of true and predicted boundaries differ."""
        return count_boundaries_between(truth, distance) != count_boundaries_between(
            prediction, distance
        )
