"""What a paradigm's law of motion consists of.

For every paradigm the focus moves by ν' = r α(1 − α) I / C, where the incentive I = −∂L/∂α is what the loss would
gain from more focus, and the classifier by μ' = `pace`. Dividing one by the other separates the two:
dν/(1 − α) = r dG(μ), so F(ν) − r G(μ) never changes; `push` is G.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from neural.tasks.focusing.theory.setting import Numbers


class Law(ABC):
    """One paradigm with C classes. α is the focus, μ the classifier's margin; times are those of gradient flow."""

    name: str

    def __init__(self, classes: int) -> None:
        self.classes = classes
        self.others = classes - 1
        """A in the formulas."""

    @abstractmethod
    def loss(self, focus: Numbers, margin: Numbers) -> Numbers:
        """Mean loss, in nats: log C at margin 0."""

    @abstractmethod
    def incentive(self, focus: Numbers, margin: Numbers) -> Numbers:
        """I = −∂L/∂α: how much the loss would fall with more focus, the classifier as it is."""

    @abstractmethod
    def pace(self, focus: Numbers, margin: Numbers) -> Numbers:
        """μ', how fast the classifier's margin grows."""

    @abstractmethod
    def push(self, margin: Numbers) -> Numbers:
        """G(μ): F(ν) − r G(μ) stays what it was."""

    @abstractmethod
    def held_margin(self, focus: float, time: Numbers) -> Numbers:
        """μ after that time from zero, with the focus held fixed."""

    @abstractmethod
    def held_time(self, focus: float, margin: Numbers) -> Numbers:
        """The time that a held focus takes from zero to this margin."""

    @abstractmethod
    def best_loss(self, focus: Numbers) -> Numbers:
        """The loss of the best classifier under a held focus: what training tends to."""

    @abstractmethod
    def right(self, focus: Numbers, margin: Numbers) -> Numbers:
        """The probability of the right class, predicted as this paradigm is trained: by the mixed input, or mixed."""

    def alone(self, margin: Numbers) -> Numbers:
        """β: the probability of the right class on the foreground alone."""
        return 1 / (1 + self.others * np.exp(-np.asarray(margin, float)))
