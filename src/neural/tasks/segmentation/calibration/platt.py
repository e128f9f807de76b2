"""Platt scaling: a linear function of the margin (Platt, 1999).

Margins are the log-odds of the model that a segment begins at an element (sentence or line).
"""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np

from neural.tasks.segmentation.calibrator import MarginCalibrator, fit_logistic, smooth_targets
from neural.tasks.segmentation.probability import sigmoid


class Platt(MarginCalibrator):
    """The margin becomes `scale` · margin + `shift` (Platt's A and B).

    The argument is the log-odds, not the probability. A probability of 0.99 is a margin of 4.6;
    with a scale of 1.293 and no shift it becomes 0.9974.
    """

    complexity_rank: ClassVar[int] = 2  # of two equally good methods, the lower rank wins

    scale: float = 1.0
    shift: float = 0.0

    @classmethod
    def fit_margins(cls, margins: np.ndarray, truth: np.ndarray) -> Self:
        """Logistic regression with a scale of at least 0: a negative one would invert decisions."""
        columns = np.stack([margins, np.ones_like(margins)])
        bounds = np.array([0, -np.inf]), np.array([np.inf, np.inf])
        scale, shift = fit_logistic(columns, smooth_targets(margins, truth), *bounds)
        return cls(scale=float(scale), shift=float(shift))

    def predict_positive(self, margins: np.ndarray) -> np.ndarray:
        """Probability of the positive class: sigmoid of the new margin."""
        return sigmoid(self.scale * margins + self.shift)
