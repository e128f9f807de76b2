"""Baseline: a boundary every k elements (sentences or lines)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np
import numpy.typing as npt

from neural.language.declaration import int_field
from neural.tasks.segmentation.baseline import SegmentationBaseline
from neural.tasks.segmentation.boundary_encoding import Boundaries, check_boundaries


class EveryK(SegmentationBaseline):
    """Segments of equal length; the last one may be shorter."""

    length: int = int_field(
        "Elements in a segment; evaluation uses the mean length of the training segments.",
        default=10,
    )

    def find_boundaries(self, elements: Sequence[str]) -> Boundaries:
        """A boundary at every multiple of the length."""
        positions = np.arange(len(elements))
        return (positions % self.length == 0) & (positions > 0)

    @classmethod
    def from_training(cls, truths: Sequence[npt.ArrayLike]) -> Self:
        """Length is the mean length of all training segments, rounded."""
        documents = [check_boundaries(truth) for truth in truths]
        if not documents:
            raise ValueError(
                "the mean segment length is taken from training documents; there are none"
            )
        elements = sum(map(len, documents))
        segments = sum(1 + int(boundaries.sum()) for boundaries in documents)
        return cls(length=max(1, round(elements / segments)))
