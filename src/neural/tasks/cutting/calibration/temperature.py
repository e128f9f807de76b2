"""Temperature scaling: one number that all scores are divided by (Guo et al., 2017)."""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np

from neural.tasks.cutting.calibrated import Calibration, pulled
from neural.tasks.cutting.logistic import logistic, multinomial
from neural.tasks.cutting.probability import plain_probabilities

COLDEST, HOTTEST = 1e-3, 1e3


class Temperature(Calibration):
    """Scores divided by one number: above 1 the model was too sure, below 1 not sure enough. Keeps every decision."""

    simplicity: ClassVar[int] = 1
    widths: ClassVar[tuple[int, float]] = (1, float("inf"))

    temperature: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.temperature <= 0:
            raise ValueError(f"`temperature` must be above 0, got {self.temperature}")

    @classmethod
    def learned(cls, scores: np.ndarray, truth: np.ndarray) -> Self:
        """Found as 1 / temperature, in which the log loss is convex."""
        if not scores.any():   # of logits too, whose rows end at 0: no temperature changes these
            return cls()
        bounds = np.array([1 / HOTTEST]), np.array([1 / COLDEST])
        shares = pulled(scores, truth)
        if scores.ndim == 1:
            (scale,) = logistic(scores[None], shares, *bounds)
        else:
            for_all = np.repeat([1.0, 0.0], scores.shape[1])[:, None]
            (scale,) = multinomial(scores, shares, for_all, *bounds)
        return cls(temperature=float(1 / scale))

    def probabilities(self, scores: np.ndarray) -> np.ndarray:
        """As ever, of the scores after the division."""
        return plain_probabilities(scores / self.temperature)
