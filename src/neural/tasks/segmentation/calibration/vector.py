"""Vector scaling: a scale and a shift for the logit of every class (Guo et al., 2017)."""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np

from neural.tasks.segmentation.calibrator import Calibrator, fit_multinomial, smooth_targets
from neural.tasks.segmentation.probability import scores_to_probabilities


class Vector(Calibrator):
    """Each logit becomes `scale` · logit + `shift`, with a scale and a shift per class.

    It corrects models that favour some classes. Before scaling, the largest logit of each row is
    subtracted (`check_scores`), so that only differences of logits matter.
    """

    complexity_rank: ClassVar[int] = 4  # of two equally good methods, the lower rank wins
    # least and most columns of the scores; margins are one column
    accepted_columns: ClassVar[tuple[int, float]] = (2, float("inf"))

    # One number per class; empty tuples leave the logits as they are.
    scale: tuple[float, ...] = ()
    shift: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.scale) != len(self.shift):
            raise ValueError(
                f"a vector calibration has {len(self.scale)} scales and {len(self.shift)} shifts"
            )

    @classmethod
    def fit_scores(cls, scores: np.ndarray, truth: np.ndarray) -> Self:
        """Fit to logits. Scales are at least 0; shifts sum to 0 (a common one has no effect)."""
        classes = scores.shape[1]
        bounds = np.repeat([0, -np.inf], classes), np.full(2 * classes, np.inf)
        scale, shift = np.split(
            fit_multinomial(scores, smooth_targets(scores, truth), np.eye(2 * classes), *bounds), 2
        )
        return cls(scale=tuple(scale.tolist()), shift=tuple((shift - shift.mean()).tolist()))

    def predict_probabilities(self, scores: np.ndarray) -> np.ndarray:
        """Softmax of the scaled and shifted logits."""
        if not self.scale:
            return scores_to_probabilities(scores)
        if len(self.scale) != scores.shape[1]:
            raise ValueError(
                f"calibrated for {len(self.scale)} classes, but these scores have {scores.shape[1]}"
            )
        return scores_to_probabilities(scores * self.scale + self.shift)
