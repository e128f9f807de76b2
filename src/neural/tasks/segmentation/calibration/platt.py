"""Platt scaling: a linear function of the margin (Platt, 1999)."""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np
from scipy.special import expit

from neural.tasks.segmentation.calibrator import MarginCalibrator, fit_logistic, smooth_targets


class Platt(MarginCalibrator):
    """`scale` · margin + `shift` (Platt's A and B); the shift moves the decision boundary.

    The margin is the log-odds, not the probability: 0.99 is a margin of 4.6, which a scale of 1.293
    turns into 0.9974. Taken as a margin itself, 0.99 would become 0.78.
    """

    complexity: ClassVar[int] = 2

    scale: float = 1.0
    shift: float = 0.0

    @classmethod
    def fit_margins(cls, margins: np.ndarray, truth: np.ndarray) -> Self:
        """Logistic regression with a scale of at least 0; a negative one inverts decisions."""
        columns = np.stack([margins, np.ones_like(margins)])
        bounds = np.array([0, -np.inf]), np.array([np.inf, np.inf])
        scale, shift = fit_logistic(columns, smooth_targets(margins, truth), *bounds)
        return cls(scale=float(scale), shift=float(shift))

    def predict_positive(self, margins: np.ndarray) -> np.ndarray:
        """Sigmoid of the linear function."""
        return expit(self.scale * margins + self.shift)
