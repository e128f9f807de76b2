"""Soft attention: one call of the classifier on the mean segment, which is α e_y."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import wrightomega

from neural.tasks.focusing.theory.law import Law
from neural.tasks.focusing.theory.setting import Numbers


class Soft(Law):
    """−log softmax(g(Σ a x))_y: the margin is seen through the focus, as αμ."""

    name = "soft"

    def loss(self, focus: Numbers, margin: Numbers) -> Numbers:
        """log(1 + A e^−αμ)."""
        return np.log1p(self.others * np.exp(-focus * np.asarray(margin)))

    def incentive(self, focus: Numbers, margin: Numbers) -> Numbers:
        """μ q, where q = A/(e^αμ + A) is what is still doubted: falls away as the classifier makes up for the focus."""
        return margin * (1 - self.right(focus, margin))

    def pace(self, focus: Numbers, margin: Numbers) -> Numbers:
        """α q/A."""
        return focus / (np.exp(focus * np.asarray(margin)) + self.others)

    def push(self, margin: Numbers) -> Numbers:
        """A μ²/(2C): grows with the square of the margin where all others grow with its exponential."""
        return self.others * np.square(margin) / (2 * self.classes)

    def held_margin(self, focus: float, time: Numbers) -> Numbers:
        """s = αμ solves e^s + A s = α² t + 1."""
        return crossing(self.others, focus**2 * np.asarray(time) + 1) / focus

    def held_time(self, focus: float, margin: Numbers) -> Numbers:
        """The same equation, read from the other side."""
        seen = focus * np.asarray(margin)
        return (np.expm1(seen) + self.others * seen) / focus**2

    def best_loss(self, focus: Numbers) -> Numbers:
        """0 whatever the focus: a large enough margin makes up for any α > 0."""
        return np.zeros_like(np.asarray(focus, float))

    def right(self, focus: Numbers, margin: Numbers) -> Numbers:
        """On the mean segment."""
        return self.alone(focus * np.asarray(margin))


def crossing(slope: float, height: Numbers) -> Numbers:
    """s where e^s + slope · s = height, by Wright's omega: with τ = height/slope it is τ − ω(τ − log slope).

    e^s/slope is that ω itself, and its logarithm keeps the digits that the difference loses.
    """
    return math.log(slope) + np.log(wrightomega(np.asarray(height, float) / slope - math.log(slope)))
