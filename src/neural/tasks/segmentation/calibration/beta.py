"""Beta calibration (Kull et al., 2017): the right map if probabilities are beta distributed.

Margins are the log-odds of the model, ln p − ln(1 − p), where p is the model's own probability.
"""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np

from neural.tasks.segmentation.calibrator import MarginCalibrator, fit_logistic, smooth_targets
from neural.tasks.segmentation.probability import sigmoid


class Beta(MarginCalibrator):
    """The log-odds become `a` · ln p − `b` · ln(1 − p) + `c`.

    So small and large p have different scales. With a = b = 1 and c = 0 nothing changes.
    """

    complexity_rank: ClassVar[int] = 3  # of two equally good methods, the lower rank wins

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
        """Probability of the positive class: sigmoid of the new log-odds."""
        return sigmoid(np.array([self.a, self.b, self.c]) @ _log_columns(margins))


def _log_columns(margins: np.ndarray) -> np.ndarray:
    """Rows ln p, −ln(1 − p) and 1, (3, n), from the margins: exact also for p near 0 or 1."""
    return np.stack([-np.logaddexp(0, -margins), np.logaddexp(0, margins), np.ones_like(margins)])
