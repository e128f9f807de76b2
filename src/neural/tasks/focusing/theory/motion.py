"""Focus and classifier together, by one law, from any start.

The score follows from the margin by the invariant, F(ν) = F(ν₀) + r (G(μ) − G(μ₀)), so the time to a margin is one
integral of 1/μ', and the place at a time is that integral turned round.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from neural.tasks.focusing.theory.integral import Integral, root
from neural.tasks.focusing.theory.law import Law
from neural.tasks.focusing.theory.setting import Setting, is_focus


@dataclass(frozen=True, slots=True, kw_only=True)
class Trajectory:
    """Where things are at each of some times."""

    time: np.ndarray
    margin: np.ndarray
    score: np.ndarray
    focus: np.ndarray
    loss: np.ndarray
    incentive: np.ndarray
    right: np.ndarray
    """The probability of the right class, predicted as the paradigm is trained."""


class Motion:
    """What a law does from a margin and a score on; times are counted from there."""

    def __init__(self, setting: Setting, law: Law, *, margin: float = 0.0, score: float = 0.0) -> None:
        self.setting, self.law, self.margin, self.score = setting, law, margin, score
        self.level = float(setting.climb(score)) - setting.rate * float(law.push(margin))
        """F(ν) − r G(μ): what never changes."""
        self.times = Integral(self._slowness, margin)

    def score_at(self, margin: float | np.ndarray) -> np.ndarray:
        """ν when the margin is so large."""
        return np.asarray(self.setting.score_after(self.setting.rate * self.law.push(margin) + self.level))

    def focus_at(self, margin: float | np.ndarray) -> np.ndarray:
        """α when the margin is so large."""
        return np.asarray(self.setting.focus(self.score_at(margin)))

    def margin_to(self, focus: float) -> float:
        """μ when the focus is so large; where it starts if it was that large already."""
        wanted = (float(self.setting.climb(self.setting.score(is_focus(focus)))) - self.level) / self.setting.rate
        if self.law.push(self.margin) >= wanted:
            return self.margin
        far = self.margin + 1.0
        while self.law.push(far) < wanted:
            far *= 2
        return root(lambda margin: self.law.push(margin) - wanted, self.margin, far)

    def time_to(self, focus: float) -> float:
        """When the focus is so large; infinite where that is beyond all counting."""
        return float(self.times(self.margin_to(focus)))

    def trajectory(self, time: np.ndarray) -> Trajectory:
        """Everything at these times."""
        margin = self.times.place(time)
        score = self.score_at(margin)
        focus = np.asarray(self.setting.focus(score))
        law = self.law
        return Trajectory(
            time=np.asarray(time, float), margin=margin, score=score, focus=focus,
            loss=np.asarray(law.loss(focus, margin)), incentive=np.asarray(law.incentive(focus, margin)),
            right=np.asarray(law.right(focus, margin)),
        )  # fmt: skip

    def _slowness(self, margin: np.ndarray) -> np.ndarray:
        return 1 / np.asarray(self.law.pace(self.focus_at(margin), margin))


def equal_incentive(motion: Motion, then: Law, *, until: float = 1e9) -> float | None:
    """The margin at which the other law begins to pull harder on the focus; None if that is never, up to a time.

    The start where it pulls harder from the start, as hard does with two segments and two classes.
    """

    def ahead(margin: float | np.ndarray) -> np.ndarray:
        focus = motion.focus_at(margin)
        return np.asarray(then.incentive(focus, margin)) - np.asarray(motion.law.incentive(focus, margin))

    last = float(motion.times.place(until))
    margins = np.linspace(motion.margin, last, 2000)[1:]
    behind = ahead(margins) < 0
    if not behind[0]:
        return motion.margin
    over = np.flatnonzero(~behind)
    if not len(over):
        return None
    return root(ahead, float(margins[over[0] - 1]), float(margins[over[0]]))
