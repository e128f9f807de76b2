"""Baseline that predicts no boundaries."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from neural.tasks.segmentation.baseline import SegmentationBaseline
from neural.tasks.segmentation.boundary_encoding import Boundaries


class Nothing(SegmentationBaseline):
    """The document is one segment."""

    def find_boundaries(self, elements: Sequence[str]) -> Boundaries:
        """All False."""
        return np.zeros(len(elements), bool)
