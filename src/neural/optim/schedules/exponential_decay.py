"""Exponential decay of the learning rate, as in Keras with `staircase=False`."""

from __future__ import annotations

from neural.language.declaration import float_field, int_field
from neural.optim.schedule import Schedule


class ExponentialDecay(Schedule):
    """initial_learning_rate · decay_rate^(step / decay_steps)."""

    initial_learning_rate: float = float_field("The rate at step 0.", above=0, aliases=("initial",))
    decay_steps: int = int_field("Steps over which the rate is multiplied by `decay_rate`.")
    decay_rate: float = float_field("Factor on the rate per `decay_steps` steps.", above=0)

    def learning_rate_at(self, step: float) -> float:
        """The learning rate at a step."""
        return self.initial_learning_rate * self.decay_rate ** (step / self.decay_steps)

    @property
    def peak_learning_rate(self) -> float:
        """The rate at step 0."""
        return self.initial_learning_rate

    @classmethod
    def example(cls) -> Schedule:
        """A rate that halves every five steps."""
        return cls(initial_learning_rate=0.1, decay_steps=5, decay_rate=0.5)
