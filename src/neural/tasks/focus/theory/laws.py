"""Laws: the equations of training with each loss: soft, hard, lvml, and renyi:τ of any order τ.

Soft and hard are soft and hard attention; lvml is the latent variable marginal likelihood. A law
gives the loss and the rates at which focus and classifier learn, for the linear model of
setting.py. An example has m segments; the foreground is the one that decides the class. Symbols:

    C, A = C − 1            number of classes
    α                       focus: the attention weight of the foreground
    μ, ν                    margin of the classifier, and focus score, of the foreground
    r                       learning rate of the focus relative to the classifier's
    F(ν)                    integral of dν/(1 − α) (setting.py)
    β, L = log(Cβ)          probability of the label on the foreground; its log ratio to chance
    h = (Cβ)^−τ             ratio of background to foreground likelihood, to the power τ
    E = e^μ − 1 + Aμ        `_hard_integral`
    J = ∫ (A + e^μ) h dμ    `_renyi_integral`
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import numpy as np
from scipy.special import spence, wrightomega

from neural.core.errors import TaskError
from neural.core.names import suggest_name
from neural.tasks.focus.theory.numerics import InvertibleIntegral
from neural.tasks.focus.theory.setting import Numbers


class Law(ABC):
    """Base class: equations of one loss under gradient flow; `focus` is α, `margin` is μ."""

    name: str

    def __init__(self, classes: int) -> None:
        self.classes = classes
        self.other_classes = classes - 1
        """C − 1; A in the formulas."""

    @abstractmethod
    def loss(self, focus: Numbers, margin: Numbers) -> Numbers:
        """Mean loss, in nats: log C at margin 0."""

    @abstractmethod
    def incentive(self, focus: Numbers, margin: Numbers) -> Numbers:
        """I = −∂loss/∂α: how fast the loss falls if the focus grows, with a fixed classifier."""

    @abstractmethod
    def margin_rate(self, focus: Numbers, margin: Numbers) -> Numbers:
        """dμ/dt, the growth rate of the margin."""

    @abstractmethod
    def margin_integral(self, margin: Numbers) -> Numbers:
        """G(μ), the function for which F(ν) − r G(μ) is constant in time."""

    @abstractmethod
    def margin_at_fixed_focus(self, focus: float, time: Numbers) -> Numbers:
        """μ after training for `time` from μ = 0, with a fixed focus."""

    @abstractmethod
    def time_at_fixed_focus(self, focus: float, margin: Numbers) -> Numbers:
        """Time of training from μ = 0 to this margin, with a fixed focus."""

    @abstractmethod
    def best_loss(self, focus: Numbers) -> Numbers:
        """Loss of the optimal classifier for a fixed focus: the limit of training."""

    @abstractmethod
    def label_probability(self, focus: Numbers, margin: Numbers) -> Numbers:
        """Probability of the label by the paradigm's prediction rule."""

    def foreground_probability(self, margin: Numbers) -> Numbers:
        """β: probability of the label on the foreground segment alone."""
        return 1 / (1 + self.other_classes * np.exp(-np.asarray(margin, float)))


class RenyiLaw(Law):
    """Rényi loss of any order τ > 0; the integral J is numerical unless τ = 1."""

    def __init__(self, classes: int, order: float) -> None:
        super().__init__(classes)
        if not (math.isfinite(order) and order > 0):
            raise TaskError(f"the Rényi order must be positive and finite, got {order}")
        self.order = order
        self.name = f"renyi:{order:g}"
        self._integral = InvertibleIntegral(
            lambda margin: (self.other_classes + np.exp(margin)) * self._background_ratio(margin)
        )

    def log_gain(self, margin: Numbers) -> Numbers:
        """L = log(Cβ): log ratio of the label's foreground probability to chance, in nats."""
        return math.log(self.classes) - np.log1p(
            self.other_classes * np.exp(-np.asarray(margin, float))
        )

    def loss(self, focus: Numbers, margin: Numbers) -> Numbers:
        """−(1/τ) log Σⱼ aⱼ pⱼ[y]^τ over segments j with focus aⱼ and label probability pⱼ[y]."""
        mixture = focus + (1 - focus) * self._background_ratio(margin)
        return math.log(self.classes) - self.log_gain(margin) - np.log(mixture) / self.order

    def incentive(self, focus: Numbers, margin: Numbers) -> Numbers:
        """(1 − h)/(τ (α + (1 − α) h))."""
        background_ratio = self._background_ratio(margin)
        return -np.expm1(-self.order * self.log_gain(margin)) / (
            self.order * (focus + (1 - focus) * background_ratio)
        )

    def margin_rate(self, focus: Numbers, margin: Numbers) -> Numbers:
        """ρ/(e^μ + A), where ρ = α/(α + (1 − α) h) is the posterior of the foreground."""
        responsibility = focus / (focus + (1 - focus) * self._background_ratio(margin))
        return responsibility / (np.exp(np.asarray(margin, float)) + self.other_classes)

    def margin_integral(self, margin: Numbers) -> Numbers:
        """(E − J)/(Cτ)."""
        return (self._hard_integral(margin) - self._renyi_integral(margin)) / (
            self.classes * self.order
        )

    def time_at_fixed_focus(self, focus: float, margin: Numbers) -> Numbers:
        """E + (1 − α)/α · J."""
        return self._hard_integral(margin) + (1 - focus) / focus * self._renyi_integral(margin)

    def margin_at_fixed_focus(self, focus: float, time: Numbers) -> Numbers:
        """Inverse of `time_at_fixed_focus`."""
        return InvertibleIntegral(
            lambda margin: 1 / np.asarray(self.margin_rate(focus, margin))
        ).invert(np.asarray(time, float))

    def best_loss(self, focus: Numbers) -> Numbers:
        """−(1/τ) log(α + (1 − α) C^−τ): the classifier is certain on the foreground."""
        focus = np.asarray(focus, float)
        return -np.log(focus + (1 - focus) * self.classes**-self.order) / self.order

    def label_probability(self, focus: Numbers, margin: Numbers) -> Numbers:
        """αβ + (1 − α)/C: mixture of the probabilities of all segments."""
        return focus * self.foreground_probability(margin) + (1 - np.asarray(focus)) / self.classes

    def _background_ratio(self, margin: Numbers) -> Numbers:
        """h = (Cβ)^−τ: ratio of background to foreground probability, to the power τ."""
        return np.exp(-self.order * np.asarray(self.log_gain(margin)))

    def _hard_integral(self, margin: Numbers) -> Numbers:
        """E = ∫ (A + e^μ) dμ from 0."""
        return np.expm1(margin) + self.other_classes * np.asarray(margin)

    def _renyi_integral(self, margin: Numbers) -> Numbers:
        """J = ∫ (A + e^μ) h dμ from 0."""
        return self._integral(margin)


class MarginalLaw(RenyiLaw):
    """LVML (marginal likelihood): τ = 1, where J is a sum of exponentials."""

    def __init__(self, classes: int) -> None:
        super().__init__(classes, 1.0)
        self.name = "lvml"

    def _renyi_integral(self, margin: Numbers) -> Numbers:
        a, margin = self.other_classes, np.asarray(margin, float)
        return (np.expm1(margin) + 2 * a * margin - a * a * np.expm1(-margin)) / self.classes


class HardLaw(RenyiLaw):
    """Hard attention (expected log-likelihood): the limit τ → 0, where h = 1 and I = L."""

    def __init__(self, classes: int) -> None:
        Law.__init__(self, classes)
        self.order, self.name = 0.0, "hard"

    def loss(self, focus: Numbers, margin: Numbers) -> Numbers:
        """−α log β + (1 − α) log C."""
        return math.log(self.classes) - focus * self.log_gain(margin)

    def incentive(self, focus: Numbers, margin: Numbers) -> Numbers:
        """L, independent of the focus."""
        return self.log_gain(margin) + 0 * np.asarray(focus)

    def margin_integral(self, margin: Numbers) -> Numbers:
        """∫ (A + e^μ) log(Cβ) dμ / C; the dilogarithm Li₂(−x) is scipy's spence(1 + x)."""
        a, c, margin = self.other_classes, self.classes, np.asarray(margin, float)
        total = np.exp(margin) + a
        dilogarithms = spence(1 + a * np.exp(-margin)) - spence(1.0 + a)
        elementary = (
            math.log(c) * self._hard_integral(margin)
            + margin * np.exp(margin)
            - total * np.log(total)
        )
        return (elementary + c * math.log(c) - a * dilogarithms) / c

    def margin_at_fixed_focus(self, focus: float, time: Numbers) -> Numbers:
        """μ solves e^μ + A μ = α t + 1."""
        return solve_exp_linear(self.other_classes, focus * np.asarray(time) + 1)

    def best_loss(self, focus: Numbers) -> Numbers:
        """(1 − α) log C."""
        return (1 - np.asarray(focus, float)) * math.log(self.classes)

    def _renyi_integral(self, margin: Numbers) -> Numbers:
        return self._hard_integral(margin)


class SoftLaw(Law):
    """Soft attention: the classifier g classifies the mean segment Σⱼ aⱼ xⱼ.

    The loss is −log softmax(g(Σⱼ aⱼ xⱼ))[y]. The margin on the mean segment, the effective margin,
    is αμ.
    """

    name = "soft"

    def loss(self, focus: Numbers, margin: Numbers) -> Numbers:
        """log(1 + A e^−αμ)."""
        return np.log1p(self.other_classes * np.exp(-focus * np.asarray(margin)))

    def incentive(self, focus: Numbers, margin: Numbers) -> Numbers:
        """μ q with q = A/(e^αμ + A), the error probability.

        Vanishes as the classifier compensates for a weak focus.
        """
        return margin * (1 - self.label_probability(focus, margin))

    def margin_rate(self, focus: Numbers, margin: Numbers) -> Numbers:
        """α q/A."""
        return focus / (np.exp(focus * np.asarray(margin)) + self.other_classes)

    def margin_integral(self, margin: Numbers) -> Numbers:
        """A μ²/(2C): quadratic in the margin. For all other laws G grows exponentially."""
        return self.other_classes * np.square(margin) / (2 * self.classes)

    def margin_at_fixed_focus(self, focus: float, time: Numbers) -> Numbers:
        """s = αμ solves e^s + A s = α² t + 1."""
        return solve_exp_linear(self.other_classes, focus**2 * np.asarray(time) + 1) / focus

    def time_at_fixed_focus(self, focus: float, margin: Numbers) -> Numbers:
        """(e^s − 1 + A s)/α² with s = αμ."""
        effective_margin = focus * np.asarray(margin)
        return (np.expm1(effective_margin) + self.other_classes * effective_margin) / focus**2

    def best_loss(self, focus: Numbers) -> Numbers:
        """0: a large enough margin compensates for any α > 0."""
        return np.zeros_like(np.asarray(focus, float))

    def label_probability(self, focus: Numbers, margin: Numbers) -> Numbers:
        """Probability of the label on the mean segment."""
        return self.foreground_probability(focus * np.asarray(margin))


LAWS: dict[str, type[SoftLaw] | type[HardLaw] | type[MarginalLaw]] = {
    "soft": SoftLaw,
    "hard": HardLaw,
    "lvml": MarginalLaw,
}


def create_law(name: str, classes: int) -> Law:
    """Create a law by the name of its loss. Raises TaskError for an unknown name."""
    if name in LAWS:
        return LAWS[name](classes)
    kind, _, order = name.partition(":")
    if kind != "renyi":
        suggestion = suggest_name(name, LAWS)
        message = f"the theory covers soft, hard, lvml and renyi:τ, not `{name}`"
        raise TaskError(message + (f"; {suggestion}" if suggestion else ""))
    try:
        return RenyiLaw(classes, float(order))
    except ValueError as error:
        if isinstance(error, TaskError):
            raise
        raise TaskError(f"`{name}`: write the Rényi order as a number, as in renyi:2") from None


def solve_exp_linear(slope: float, height: Numbers) -> Numbers:
    """Solve e^s + slope · s = height for s, by Wright's omega function.

    With z = height/slope, s = z − ω(z − log slope). Computed as log(slope · ω), because ω =
    e^s/slope and the difference would lose digits.
    """
    return math.log(slope) + np.log(
        wrightomega(np.asarray(height, float) / slope - math.log(slope))
    )
