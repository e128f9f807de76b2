"""Isotonic regression by pool adjacent violators (Zadrozny and Elkan, 2002).

Margins are log-odds of the model; see calibrator.py.
"""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np
from scipy.optimize import isotonic_regression
from scipy.special import expit

from neural.tasks.segmentation.calibrator import PRIOR_WEIGHT, MarginCalibrator


class Isotonic(MarginCalibrator):
    """Monotonic piecewise linear map, constant outside. Needs a few thousand elements."""

    complexity: ClassVar[int] = 6

    margins: tuple[float, ...] = ()
    """Knots of the map, increasing."""
    values: tuple[float, ...] = ()
    """Probability at each knot."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.margins) != len(self.values) or list(self.margins) != sorted(set(self.margins)):
            raise ValueError(
                "the margins of an isotonic calibration must increase, with a value for each"
            )

    @classmethod
    def fit_margins(cls, margins: np.ndarray, truth: np.ndarray) -> Self:
        """Blocks of margins with one probability each, shrunk towards that of the mean margin.

        The shrinkage has the weight of one element, so that no value is exactly 0 or 1. One
        probability per block, that of its mean margin, has no larger log loss than the margins
        themselves (within a block the truth does not increase), and the shrunk values have no
        larger loss than that.
        """
        points, inverse, counts = np.unique(margins, return_inverse=True, return_counts=True)
        frequencies = np.bincount(inverse, weights=truth) / counts
        block_starts = isotonic_regression(frequencies, weights=counts).blocks[:-1]
        sizes = np.add.reduceat(counts, block_starts)
        hits = np.add.reduceat(frequencies * counts, block_starts)
        model_probabilities = expit(np.add.reduceat(points * counts, block_starts) / sizes)
        values = isotonic_regression(
            (hits + PRIOR_WEIGHT * model_probabilities) / (sizes + PRIOR_WEIGHT),
            weights=sizes + PRIOR_WEIGHT,
        ).x
        block_ends = np.append(block_starts[1:], len(points)) - 1
        # Unique, because a block of one margin starts and ends at it.
        knots = np.unique(np.stack([block_starts, block_ends]))
        knot_values = values[np.searchsorted(block_starts, knots, side="right") - 1]
        return cls(margins=tuple(points[knots].tolist()), values=tuple(knot_values.tolist()))

    def predict_positive(self, margins: np.ndarray) -> np.ndarray:
        """P(yes) of each margin, by linear interpolation."""
        return np.interp(margins, self.margins, self.values)
