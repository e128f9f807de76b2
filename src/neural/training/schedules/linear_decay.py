"""A rate that falls along a line (Devlin et al., 2018), with a warm-up if wanted."""

from __future__ import annotations

from neural.language.declaration import count, number
from neural.training.schedule import Schedule


class LinearDecay(Schedule):
    """Falls by the same amount at every step."""

    initial_learning_rate: float = number("The highest rate.", above=0, aliases=("initial",))
    decay_steps: int = count("Steps from the highest rate to the lowest.")
    alpha: float = number("The lowest rate, as a share of the highest.", default=0.0, at_least=0, at_most=1)
    warmup_steps: int = count("Steps of rising from 0 before that.", default=0, at_least=0)

    def at(self, step: float) -> float:
        """Rises along a line, falls along another, then stays."""
        if step < self.warmup_steps:
            return self.initial_learning_rate * step / self.warmup_steps
        done = min(1.0, (step - self.warmup_steps) / self.decay_steps)
        return self.initial_learning_rate * (1 - (1 - self.alpha) * done)

    @property
    def peak(self) -> float:
        """After the warm-up."""
        return self.initial_learning_rate

    @classmethod
    def tiny(cls) -> Schedule:
        """Two steps up, five down."""
        return cls(initial_learning_rate=0.1, decay_steps=5, alpha=0.1, warmup_steps=2)
