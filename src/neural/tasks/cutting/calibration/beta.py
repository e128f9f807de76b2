"""Beta calibration: what is right where the scores of both answers follow beta distributions (Kull et al., 2017)."""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np
from scipy.special import expit

from neural.tasks.cutting.calibrated import OfMargins, pulled
from neural.tasks.cutting.logistic import logistic


class Beta(OfMargins):
    """`a` · ln p − `b` · ln(1 − p) + `c`: where p is small another scale than where it is large."""

    simplicity: ClassVar[int] = 3

    a: float = 1.0
    b: float = 1.0
    c: float = 0.0

    @classmethod
    def learned_from(cls, margins: np.ndarray, truth: np.ndarray) -> Self:
        """With a and b at least 0, so that it never falls."""
        bounds = np.array([0, 0, -np.inf]), np.full(3, np.inf)
        a, b, c = logistic(_columns(margins), pulled(margins, truth), *bounds)
        return cls(a=float(a), b=float(b), c=float(c))

    def yes(self, margins: np.ndarray) -> np.ndarray:
        """The logistic function of the weighted logarithms."""
        return expit(np.array([self.a, self.b, self.c]) @ _columns(margins))


def _columns(margins: np.ndarray) -> np.ndarray:
    """ln p, −ln(1 − p) and 1, from the margins: exact also where p is as good as 0 or 1."""
    return np.stack([-np.logaddexp(0, -margins), np.logaddexp(0, margins), np.ones_like(margins)])
