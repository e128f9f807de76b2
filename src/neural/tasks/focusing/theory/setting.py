"""The linear orthogonal setting: C classes, foreground e_y, background 0, linear focus and classifier from zero.

By symmetry two numbers move: the classifier's margin (`margin`, μ: the logit of the right class on the foreground
less that of any other) and the focus's score of the foreground (`score`, ν; the background's is 0). Everything is
derived in docs/focus-theory.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import wrightomega

from neural.tasks.task import TaskError

Numbers = float | np.ndarray
"""One number, or an array of them: what every formula takes and gives."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What the motion depends on, beside the paradigm. Time is step × learning rate of plain gradient descent."""

    classes: int
    segments: int
    rate: float = 1.0
    """The focus's learning rate over the classifier's."""

    def __post_init__(self) -> None:
        if self.classes < 2:
            raise TaskError(f"C is the number of classes and must be 2 or more, got {self.classes}: "
                            "with one class there is nothing to learn")  # fmt: skip
        if self.segments < 2:
            raise TaskError(f"m is the number of segments and must be 2 or more, got {self.segments}: "
                            "with one segment there is nothing to find")  # fmt: skip
        if not (math.isfinite(self.rate) and self.rate > 0):
            raise TaskError(f"the focus's rate r must be more than 0 and finite, got {self.rate}")

    def focus(self, score: Numbers) -> Numbers:
        """α, the weight on the foreground, between 0 and 1; 1/m at score 0."""
        return 1 / (1 + (self.segments - 1) * np.exp(-np.asarray(score, float)))

    def score(self, focus: Numbers) -> Numbers:
        """ν, the score that gives this focus."""
        focus = np.asarray(focus, float)
        return np.log(focus * (self.segments - 1) / (1 - focus))

    def climb(self, score: Numbers) -> Numbers:
        """F(ν) = ν + (e^ν − 1)/(m − 1), the integral of dν/(1 − α): what the classifier's push has to pay for."""
        return score + np.expm1(score) / (self.segments - 1)

    def score_after(self, climb: Numbers) -> Numbers:
        """ν where F(ν) is `climb`.

        F(ν) + 1/(m − 1) − log(m − 1) = log E + E with E = e^ν/(m − 1), so E is Wright's omega; the logarithm of E
        keeps its digits where ν = … − E would lose them.
        """
        others = self.segments - 1
        odds = wrightomega(np.asarray(climb, float) + 1 / others - math.log(others))
        return math.log(others) + np.log(odds)


def is_focus(alpha: float) -> float:
    """The value, if a focus can be held there."""
    if not 0 < alpha < 1:
        raise TaskError(f"α is the weight on the foreground and lies between 0 and 1, both excluded, got {alpha:g}")
    return alpha
