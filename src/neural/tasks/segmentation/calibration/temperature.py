"""Temperature scaling: all scores are divided by one number (Guo et al., 2017).

Scores are margins (log-odds of a binary question) or class logits.
"""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np

from neural.tasks.segmentation.calibrator import (
    Calibrator,
    fit_logistic,
    fit_multinomial,
    smooth_targets,
)
from neural.tasks.segmentation.probability import scores_to_probabilities

MIN_TEMPERATURE, MAX_TEMPERATURE = 1e-3, 1e3
"""Bounds of a fitted temperature."""


class Temperature(Calibrator):
    """Scores are divided by one number, above 1 for an overconfident model.

    The most likely class never changes.
    """

    complexity_rank: ClassVar[int] = 1  # of two equally good methods, the lower rank wins
    # least and most columns of the scores; margins are one column
    accepted_columns: ClassVar[tuple[int, float]] = (1, float("inf"))

    temperature: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.temperature <= 0:
            raise ValueError(f"`temperature` must be above 0, got {self.temperature}")

    @classmethod
    def fit_scores(cls, scores: np.ndarray, truth: np.ndarray) -> Self:
        """Fit to the scores. Optimizes 1 / temperature, because the log loss is convex in it."""
        # All scores are 0, so the temperature has no effect. Logits have a maximum of 0 per row
        # (`check_scores`), so this includes rows of equal logits.
        if not scores.any():
            return cls()
        bounds = np.array([1 / MAX_TEMPERATURE]), np.array([1 / MIN_TEMPERATURE])
        targets = smooth_targets(scores, truth)
        if scores.ndim == 1:
            (scale,) = fit_logistic(scores[None], targets, *bounds)
        else:
            # Basis of `fit_multinomial`: one scale for all classes, no shifts.
            shared_scale = np.repeat([1.0, 0.0], scores.shape[1])[:, None]
            (scale,) = fit_multinomial(scores, targets, shared_scale, *bounds)
        return cls(temperature=float(1 / scale))

    def predict_probabilities(self, scores: np.ndarray) -> np.ndarray:
        """Probabilities of the divided scores."""
        return scores_to_probabilities(scores / self.temperature)
