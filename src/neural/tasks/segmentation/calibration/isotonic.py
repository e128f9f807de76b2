"""Isotonic regression by the pool-adjacent-violators algorithm (Zadrozny and Elkan, 2002).

Margins are the log-odds of the model that a segment begins at an element (sentence or line).
"""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np

from neural.tasks.segmentation.calibrator import PRIOR_WEIGHT, MarginCalibrator
from neural.tasks.segmentation.probability import sigmoid


class Isotonic(MarginCalibrator):
    """Monotonic piecewise linear map of margins. Needs a few thousand elements.

    The map is constant below the first knot and above the last one.
    """

    complexity_rank: ClassVar[int] = 6  # of two equally good methods, the lower rank wins

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
        """Isotonic regression: blocks of consecutive margins with one probability each.

        The probability of a block is its frequency of 1, shrunk towards the sigmoid of its mean
        margin. The sigmoid has the weight of one element, so that no value is exactly 0 or 1.

        The log loss is never above that of the margins themselves: within a block the frequency
        does not increase with the margin, so replacing its margins by their mean loses nothing, and
        moving from there towards the frequency lowers the loss further.
        """
        from scipy.optimize import isotonic_regression

        points, inverse, counts = np.unique(margins, return_inverse=True, return_counts=True)
        frequencies = np.bincount(inverse, weights=truth) / counts
        block_starts = isotonic_regression(frequencies, weights=counts).blocks[:-1]
        sizes = np.add.reduceat(counts, block_starts)
        hits = np.add.reduceat(frequencies * counts, block_starts)
        model_probabilities = sigmoid(np.add.reduceat(points * counts, block_starts) / sizes)
        values = isotonic_regression(
            (hits + PRIOR_WEIGHT * model_probabilities) / (sizes + PRIOR_WEIGHT),
            weights=sizes + PRIOR_WEIGHT,
        ).x
        block_ends = np.append(block_starts[1:], len(points)) - 1
        # The map has a knot at the first and the last margin of each block. A block of one margin
        # has both at the same place, hence `unique`.
        knots = np.unique(np.stack([block_starts, block_ends]))
        knot_values = values[np.searchsorted(block_starts, knots, side="right") - 1]
        return cls(margins=tuple(points[knots].tolist()), values=tuple(knot_values.tolist()))

    def predict_positive(self, margins: np.ndarray) -> np.ndarray:
        """Probability of the positive class for each margin, by linear interpolation."""
        return np.interp(margins, self.margins, self.values)
