"""Histogram binning: in every bin, the share that came true (Zadrozny and Elkan, 2001)."""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np
from scipy.special import expit

from neural.tasks.cutting.bins import equal_mass_edges
from neural.tasks.cutting.calibrated import PULL, OfMargins

BINS = 15
FEWEST = 10
"""Elements in a bin, where there are as many."""


class Histogram(OfMargins):
    """Bins of margins, as many elements in each; all of a bin get one probability. Wants some thousand elements."""

    simplicity: ClassVar[int] = 5
    keeps_order: ClassVar[bool] = False

    edges: tuple[float, ...] = ()
    values: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.values) != len(self.edges) + 1 and (self.edges or self.values):
            raise ValueError("a histogram calibration must have one value more than edges between them")

    @classmethod
    def learned_from(cls, margins: np.ndarray, truth: np.ndarray) -> Self:
        """Each bin is pulled towards its mean margin, so that none is exactly 0 or 1."""
        edges = equal_mass_edges(margins, min(BINS, max(1, len(margins) // FEWEST)))
        which = np.searchsorted(edges, margins, side="right")
        sizes, hits, sums = (np.bincount(which, weights=one) for one in (np.ones_like(margins), truth, margins))
        values = (hits + PULL * expit(sums / sizes)) / (sizes + PULL)
        return cls(edges=tuple(edges.tolist()), values=tuple(values.tolist()))

    def yes(self, margins: np.ndarray) -> np.ndarray:
        """The value of the bin; an edge belongs to the bin above it."""
        return np.array(self.values)[np.searchsorted(self.edges, margins, side="right")]
