"""Platt scaling: a line through the margins (Platt, 1999)."""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np
from scipy.special import expit

from neural.tasks.cutting.calibrated import OfMargins, pulled
from neural.tasks.cutting.logistic import logistic


class Platt(OfMargins):
    """`scale` · margin + `shift`, the A and B of Platt: also moves where yes becomes more likely than no.

    The margin is the logarithm of the odds, not the probability: 0.99 is a margin of 4.6, and a scale of 1.293 makes
    0.9974 of it. Taken as if it were a margin, 0.99 would become 0.78.
    """

    simplicity: ClassVar[int] = 2

    scale: float = 1.0
    shift: float = 0.0

    @classmethod
    def learned_from(cls, margins: np.ndarray, truth: np.ndarray) -> Self:
        """A scale below 0 would turn every decision around, and is not taken."""
        columns = np.stack([margins, np.ones_like(margins)])
        bounds = np.array([0, -np.inf]), np.array([np.inf, np.inf])
        scale, shift = logistic(columns, pulled(margins, truth), *bounds)
        return cls(scale=float(scale), shift=float(shift))

    def yes(self, margins: np.ndarray) -> np.ndarray:
        """The logistic function of the line."""
        return expit(self.scale * margins + self.shift)
