"""Vector scaling: a scale and a shift for the logit of every class (Guo et al., 2017)."""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np

from neural.tasks.cutting.calibrated import Calibration, pulled
from neural.tasks.cutting.logistic import multinomial
from neural.tasks.cutting.probability import plain_probabilities


class Vector(Calibration):
    """`scale` · logit + `shift`, other numbers for every class: for models that favour some of them.

    Logits count from the largest of their row, so that only their differences matter, before as after.
    """

    simplicity: ClassVar[int] = 4
    widths: ClassVar[tuple[int, float]] = (2, float("inf"))

    scale: tuple[float, ...] = ()
    shift: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.scale) != len(self.shift):
            raise ValueError(f"a vector calibration with {len(self.scale)} scales and {len(self.shift)} shifts")

    @classmethod
    def learned(cls, scores: np.ndarray, truth: np.ndarray) -> Self:
        """Scales are at least 0. Shifts sum to 0: more of the same for all changes nothing."""
        classes = scores.shape[1]
        bounds = np.repeat([0, -np.inf], classes), np.full(2 * classes, np.inf)
        scale, shift = np.split(multinomial(scores, pulled(scores, truth), np.eye(2 * classes), *bounds), 2)
        return cls(scale=tuple(scale.tolist()), shift=tuple((shift - shift.mean()).tolist()))

    def probabilities(self, scores: np.ndarray) -> np.ndarray:
        """Softmax of the new logits."""
        if not self.scale:
            return plain_probabilities(scores)
        if len(self.scale) != scores.shape[1]:
            raise ValueError(f"calibrated for {len(self.scale)} classes, but these scores have {scores.shape[1]}")
        return plain_probabilities(scores * self.scale + self.shift)
