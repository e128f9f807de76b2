"""WindowDiff: does a window hold the true number of boundaries (Pevzner and Hearst, 2002)."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt

from neural.tasks.segmentation.boundary_encoding import Boundaries
from neural.tasks.segmentation.metrics._probes import ProbeMetric, count_boundaries_between


class WindowDiff(ProbeMetric):
    """Fraction of windows with a wrong number of boundaries: 0 is best.

    The windows are those of Pk, n − k of them. It is never below Pk, as near misses and superfluous
    boundaries both count.
    """

    better: ClassVar[Literal["low", "high"]] = "low"

    def find_wrong_probes(
        self, truth: Boundaries, prediction: Boundaries, distance: int
    ) -> npt.NDArray[np.bool_]:
        """Windows where the numbers of boundaries differ."""
        return count_boundaries_between(truth, distance) != count_boundaries_between(
            prediction, distance
        )
