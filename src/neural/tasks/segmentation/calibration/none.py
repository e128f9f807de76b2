"""No calibration: the reference that other calibration methods are compared with.

Scores are margins (log-odds of a binary question) or class logits.
"""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np

from neural.tasks.segmentation.calibrator import Calibrator
from neural.tasks.segmentation.probability import scores_to_probabilities


class None_(Calibrator):  # `None` is a keyword
    """The model's own probabilities: sigmoid or softmax of its scores."""

    complexity_rank: ClassVar[int] = 0  # of two equally good methods, the lower rank wins
    # least and most columns of the scores; margins are one column
    accepted_columns: ClassVar[tuple[int, float]] = (1, float("inf"))

    @classmethod
    def fit_scores(cls, scores: np.ndarray, truth: np.ndarray) -> Self:
        """There is nothing to fit."""
        return cls()

    def predict_probabilities(self, scores: np.ndarray) -> np.ndarray:
        """Sigmoid of margins, softmax of logits."""
        return scores_to_probabilities(scores)
