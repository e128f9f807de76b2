"""A rate that rises along a line if wanted, then falls once: what the cosine and the line have in common."""

from __future__ import annotations

from typing import Self

from neural.language.declaration import count, number
from neural.training.schedule import Schedule


class Decay(Schedule):
    """From the highest rate to the lowest; subclasses say along which curve."""

    initial_learning_rate: float = number("The highest rate.", above=0, aliases=("initial",))
    decay_steps: int = count("Steps from the highest rate to the lowest.")
    alpha: float = number("The lowest rate, as a share of the highest.", default=0.0, at_least=0, at_most=1)
    warmup_steps: int = count("Steps of rising from 0 before that.", default=0, at_least=0)

    def left(self, done: float) -> float:
        """What is left of the way down, from 1 to 0, when so much of the time has passed."""
        raise NotImplementedError

    def at(self, step: float) -> float:
        """Rises along a line, falls along the curve, then stays."""
        if step < self.warmup_steps:
            return self.initial_learning_rate * step / self.warmup_steps
        done = min(1.0, (step - self.warmup_steps) / self.decay_steps)
        return self.initial_learning_rate * (self.alpha + (1 - self.alpha) * self.left(done))

    @property
    def peak(self) -> float:
        """After the warm-up."""
        return self.initial_learning_rate

    @classmethod
    def tiny(cls) -> Self:
        """Two steps up, five down."""
        return cls(initial_learning_rate=0.1, decay_steps=5, alpha=0.1, warmup_steps=2)
