"""The Rényi family, L_τ = −(1/τ) log Σ a_j p_j[y]^τ: τ → 0 is hard attention, τ = 1 the marginal likelihood.

With L = log(Cβ), what the classifier knows about the foreground (0 to log C), and h = e^−τL, everything is short:

    loss       log C − L − (1/τ) log(α + (1 − α) h)
    incentive  (1 − h) / (τ (α + (1 − α) h))              hard: L
    pace       ρ / (e^μ + A),  ρ = α / (α + (1 − α) h)     the foreground's share of the responsibility
    J(μ)       ∫₀ (A + e^μ) h dμ                           the one integral of the family
    held time  E + (1 − α)/α · J,  E = e^μ − 1 + A μ       (E is J of τ = 0)
    push       (E − J) / (C τ)
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import spence

from neural.tasks.focusing.theory.integral import Integral
from neural.tasks.focusing.theory.law import Law
from neural.tasks.focusing.theory.setting import Numbers
from neural.tasks.focusing.theory.soft import crossing
from neural.tasks.task import TaskError


class Renyi(Law):
    """Any order τ above 0; J is integrated but for τ = 1."""

    def __init__(self, classes: int, order: float) -> None:
        super().__init__(classes)
        if not (math.isfinite(order) and order > 0):
            raise TaskError(f"the Rényi order must be more than 0 and finite, got {order}")
        self.order = order
        self.name = f"renyi:{order:g}"
        self._integral = Integral(lambda margin: (self.others + np.exp(margin)) * self._doubt(margin))

    def gain(self, margin: Numbers) -> Numbers:
        """L = log(Cβ): how much likelier than by chance the right class is on the foreground, in nats."""
        return math.log(self.classes) - np.log1p(self.others * np.exp(-np.asarray(margin, float)))

    def loss(self, focus: Numbers, margin: Numbers) -> Numbers:
        """L_τ itself."""
        mixed = focus + (1 - focus) * self._doubt(margin)
        return math.log(self.classes) - self.gain(margin) - np.log(mixed) / self.order

    def incentive(self, focus: Numbers, margin: Numbers) -> Numbers:
        """Between 1 and 1/α times (1 − h)/τ."""
        doubt = self._doubt(margin)
        return -np.expm1(-self.order * self.gain(margin)) / (self.order * (focus + (1 - focus) * doubt))

    def pace(self, focus: Numbers, margin: Numbers) -> Numbers:
        """The foreground's share of the responsibility, over e^μ + A."""
        share = focus / (focus + (1 - focus) * self._doubt(margin))
        return share / (np.exp(np.asarray(margin, float)) + self.others)

    def push(self, margin: Numbers) -> Numbers:
        """(E − J)/(Cτ)."""
        return (self._whole(margin) - self._blurred(margin)) / (self.classes * self.order)

    def held_time(self, focus: float, margin: Numbers) -> Numbers:
        """E + (1 − α)/α · J."""
        return self._whole(margin) + (1 - focus) / focus * self._blurred(margin)

    def held_margin(self, focus: float, time: Numbers) -> Numbers:
        """The held time, turned round."""
        return Integral(lambda margin: 1 / np.asarray(self.pace(focus, margin))).place(np.asarray(time, float))

    def best_loss(self, focus: Numbers) -> Numbers:
        """−(1/τ) log(α + (1 − α) C^−τ): where the classifier is certain on the foreground."""
        focus = np.asarray(focus, float)
        return -np.log(focus + (1 - focus) * self.classes**-self.order) / self.order

    def right(self, focus: Numbers, margin: Numbers) -> Numbers:
        """αβ + (1 − α)/C: the mixture of what the classifier says of each segment."""
        return focus * self.alone(margin) + (1 - np.asarray(focus)) / self.classes

    def _doubt(self, margin: Numbers) -> Numbers:
        """h: how little a background segment's probability, to the power τ, is beside the foreground's."""
        return np.exp(-self.order * np.asarray(self.gain(margin)))

    def _whole(self, margin: Numbers) -> Numbers:
        return np.expm1(margin) + self.others * np.asarray(margin)

    def _blurred(self, margin: Numbers) -> Numbers:
        return self._integral(margin)


class Marginal(Renyi):
    """LVML, the marginal likelihood: τ = 1, where J is a sum of exponentials."""

    def __init__(self, classes: int) -> None:
        super().__init__(classes, 1.0)
        self.name = "lvml"

    def _blurred(self, margin: Numbers) -> Numbers:
        a, margin = self.others, np.asarray(margin, float)
        return (np.expm1(margin) + 2 * a * margin - a * a * np.expm1(-margin)) / self.classes


class Hard(Renyi):
    """The expected log-likelihood: the limit τ → 0, where h is 1 and the incentive is L."""

    def __init__(self, classes: int) -> None:
        Law.__init__(self, classes)
        self.order, self.name = 0.0, "hard"

    def loss(self, focus: Numbers, margin: Numbers) -> Numbers:
        """−α log β + (1 − α) log C."""
        return math.log(self.classes) - focus * self.gain(margin)

    def incentive(self, focus: Numbers, margin: Numbers) -> Numbers:
        """L, whatever the focus."""
        return self.gain(margin) + 0 * np.asarray(focus)

    def push(self, margin: Numbers) -> Numbers:
        """∫ (A + e^μ) log(Cβ) dμ / C; the dilogarithm Li₂(−x) is scipy's spence(1 + x)."""
        a, c, margin = self.others, self.classes, np.asarray(margin, float)
        both = np.exp(margin) + a
        dilogarithms = spence(1 + a * np.exp(-margin)) - spence(1.0 + a)
        found = math.log(c) * self._whole(margin) + margin * np.exp(margin) - both * np.log(both)
        return (found + c * math.log(c) - a * dilogarithms) / c

    def held_margin(self, focus: float, time: Numbers) -> Numbers:
        """μ solves e^μ + A μ = α t + 1."""
        return crossing(self.others, focus * np.asarray(time) + 1)

    def best_loss(self, focus: Numbers) -> Numbers:
        """(1 − α) log C."""
        return (1 - np.asarray(focus, float)) * math.log(self.classes)

    def _blurred(self, margin: Numbers) -> Numbers:
        return self._whole(margin)
