"""Linear orthogonal setting: a linear focus model whose training the theory solves exactly.

An example has m segments. One of them, the foreground, is the unit vector e_y of its class y, one
of C; the others, the background, are 0. The focus is a softmax over linear scores of the segments,
the classifier is linear, and both start from zero. By symmetry only two numbers change: the margin
of the classifier (`margin`, μ: logit of the label on the foreground minus that of any other class)
and the focus score of the foreground (`score`, ν; that of the background is 0). Derivations are in
docs/focus-theory.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import wrightomega

from neural.core.errors import TaskError

Numbers = float | np.ndarray
"""A number or an array; all formulas are elementwise."""


@dataclass(frozen=True, slots=True)
class LinearSetting:
    """Parameters of the gradient flow. Time is steps × learning rate of plain gradient descent."""

    classes: int
    """C in the formulas."""
    segments: int
    """m in the formulas, the foreground included."""
    rate: float = 1.0
    """Learning rate of the focus relative to the classifier's; r in the formulas."""

    def __post_init__(self) -> None:
        if self.classes < 2:
            raise TaskError(
                f"C is the number of classes and must be at least 2, got {self.classes}: "
                "with one class there is nothing to learn"
            )
        if self.segments < 2:
            raise TaskError(
                f"m is the number of segments and must be at least 2, got {self.segments}: "
                "with one segment there is nothing to find"
            )
        if not (math.isfinite(self.rate) and self.rate > 0):
            raise TaskError(
                f"the relative learning rate r must be positive and finite, got {self.rate}"
            )

    def focus_from_score(self, score: Numbers) -> Numbers:
        """α, the focus weight of the foreground, between 0 and 1; 1/m at score 0."""
        return 1 / (1 + (self.segments - 1) * np.exp(-np.asarray(score, float)))

    def score_from_focus(self, focus: Numbers) -> Numbers:
        """ν, the score of a focus; inverse of `focus_from_score`."""
        focus = np.asarray(focus, float)
        return np.log(focus * (self.segments - 1) / (1 - focus))

    def score_integral(self, score: Numbers) -> Numbers:
        """F(ν) = ν + (e^ν − 1)/(m − 1), the integral of dν/(1 − α)."""
        return score + np.expm1(score) / (self.segments - 1)

    def invert_score_integral(self, integral: Numbers) -> Numbers:
        """ν at which F(ν) = `integral`.

        F(ν) + 1/(m − 1) − log(m − 1) = log E + E with E = e^ν/(m − 1), so E is Wright's omega
        function. ν is computed from log E, because ν = … − E would lose digits.
        """
        others = self.segments - 1
        odds = wrightomega(np.asarray(integral, float) + 1 / others - math.log(others))
        return math.log(others) + np.log(odds)


def check_focus_level(alpha: float) -> float:
    """Return α. Raises TaskError unless 0 < α < 1."""
    if not 0 < alpha < 1:
        raise TaskError(
            "α is the focus weight of the foreground, between 0 and 1, both excluded, got "
            f"{alpha:g}"
        )
    return alpha
