"""A rate that falls by the same share over equal stretches."""

from __future__ import annotations

from neural.language.declaration import count, number
from neural.training.schedule import Schedule


class ExponentialDecay(Schedule):
    """initial · rate^(step / steps), continuously."""

    initial_learning_rate: float = number("Where it starts.", above=0, aliases=("initial",))
    decay_steps: int = count("Steps in which it falls by `decay_rate`.")
    decay_rate: float = number("What is left after `decay_steps`.", above=0)

    def at(self, step: float) -> float:
        """Without stairs."""
        return self.initial_learning_rate * self.decay_rate ** (step / self.decay_steps)

    @property
    def peak(self) -> float:
        """Where it starts."""
        return self.initial_learning_rate

    @classmethod
    def tiny(cls) -> Schedule:
        """Halves in five steps."""
        return cls(initial_learning_rate=0.1, decay_steps=5, decay_rate=0.5)
