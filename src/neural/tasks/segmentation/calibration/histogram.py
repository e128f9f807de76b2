"""Histogram binning: the observed frequency of each bin (Zadrozny and Elkan, 2001).

Margins are the log-odds of the model that a segment begins at an element (sentence or line).
"""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np

from neural.tasks.segmentation.calibrator import PRIOR_WEIGHT, MarginCalibrator
from neural.tasks.segmentation.probability import equal_mass_edges, sigmoid

MAX_BINS = 15
"""Maximum number of bins."""
MIN_BIN_ELEMENTS = 10
"""With fewer elements per bin than this, fewer bins are used."""


class Histogram(MarginCalibrator):
    """Bins of margins with equal counts and one probability each. Needs a few thousand elements."""

    complexity_rank: ClassVar[int] = 5  # of two equally good methods, the lower rank wins
    is_monotonic: ClassVar[bool] = False

    edges: tuple[float, ...] = ()
    """Inner edges of the bins, as margins."""
    values: tuple[float, ...] = ()
    """Probability of each bin."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.values) != len(self.edges) + 1 and (self.edges or self.values):
            raise ValueError("a histogram calibration must have one value more than edges")

    @classmethod
    def fit_margins(cls, margins: np.ndarray, truth: np.ndarray) -> Self:
        """Frequency of 1 in each bin, shrunk towards the sigmoid of the bin's mean margin.

        The sigmoid has the weight of one element, so that no value is exactly 0 or 1.
        """
        edges = equal_mass_edges(margins, min(MAX_BINS, max(1, len(margins) // MIN_BIN_ELEMENTS)))
        bin_ids = np.searchsorted(edges, margins, side="right")
        sizes, hits, margin_sums = (
            np.bincount(bin_ids, weights=weights)
            for weights in (np.ones_like(margins), truth, margins)
        )
        values = (hits + PRIOR_WEIGHT * sigmoid(margin_sums / sizes)) / (sizes + PRIOR_WEIGHT)
        return cls(edges=tuple(edges.tolist()), values=tuple(values.tolist()))

    def predict_positive(self, margins: np.ndarray) -> np.ndarray:
        """Probability of the positive class: the value of the margin's bin.

        An edge belongs to the bin above it.
        """
        return np.array(self.values)[np.searchsorted(self.edges, margins, side="right")]
