"""Pk: do truth and prediction agree whether two elements at distance k are in the same segment?

Beeferman, Berger and Lafferty (1999). An element is a sentence or line of a document. A
probe is a pair of elements at distance k.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt

from neural.tasks.segmentation.boundary_encoding import Boundaries
from neural.tasks.segmentation.metrics._probes import ProbeMetric, count_boundaries_between


class Pk(ProbeMetric):
    """Fraction of pairs at distance k on which truth and prediction disagree: 0 is best.

    k is half the mean true segment length, rounded, at least 2; a document of n elements has n − k
    pairs. Predicting no boundary at all scores about 0.45 on most data sets.
    """

    better: ClassVar[Literal["low", "high"]] = "low"

    def find_wrong_probes(
        self, truth: Boundaries, prediction: Boundaries, distance: int
    ) -> npt.NDArray[np.bool_]:
        """True for pairs that are separated in the truth or in the prediction, but not in both."""
        is_separated = count_boundaries_between(truth, distance) > 0
        return is_separated != (count_boundaries_between(prediction, distance) > 0)
