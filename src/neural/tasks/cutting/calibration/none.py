"""No calibration: what every other method has to beat."""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np

from neural.tasks.cutting.calibrated import Calibration
from neural.tasks.cutting.probability import plain_probabilities


class None_(Calibration):   # the name itself is Python's
    """The probabilities as the model gives them."""

    simplicity: ClassVar[int] = 0
    widths: ClassVar[tuple[int, float]] = (1, float("inf"))

    @classmethod
    def learned(cls, scores: np.ndarray, truth: np.ndarray) -> Self:
        """Nothing."""
        return cls()

    def probabilities(self, scores: np.ndarray) -> np.ndarray:
        """The logistic function of margins, softmax of logits."""
        return plain_probabilities(scores)
