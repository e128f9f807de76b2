"""Beta calibration: exact for beta distributed scores (Kull et al., 2017)."""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np
from scipy.special import expit

from neural.tasks.segmentation.calibrator import MarginCalibrator, fit_logistic, smooth_targets


class Beta(MarginCalibrator):
    """`a` · ln p − `b` · ln(1 − p) + `c`: different scales for small and for large p."""

    complexity: ClassVar[int] = 3

    a: float = 1.0
    b: float = 1.0
    c: float = 0.0

    @classmethod
    def fit_margins(cls, margins: np.ndarray, truth: np.ndarray) -> Self:
        """Logistic regression with a and b at least 0, so that the map is monotonic."""
        bounds = np.array([0, 0, -np.inf]), np.full(3, np.inf)
        a, b, c = fit_logistic(_log_columns(margins), smooth_targets(margins, truth), *bounds)
        return cls(a=float(a), b=float(b), c=float(c))

    def predict_positive(self, margins: np.ndarray) -> np.ndarray:
        """Sigmoid of the weighted logarithms."""
        return expit(np.array([self.a, self.b, self.c]) @ _log_columns(margins))


def _log_columns(margins: np.ndarray) -> np.ndarray:
    """ln p, −ln(1 − p) and 1, from the margins: exact also for p near 0 or 1."""
    return np.stack([-np.logaddexp(0, -margins), np.logaddexp(0, margins), np.ones_like(margins)])
