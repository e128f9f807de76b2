"""Base classes of learning-rate schedules: the learning rate as a function of the step.

A Declaration (language/declaration.py) is a class that programs and settings call by name; its
fields are the arguments.
"""

from __future__ import annotations

from typing import Self

from neural.language.declaration import Declaration, float_field, int_field


class Schedule(Declaration):
    """A learning rate that changes during training. Schedules have no state.

    `training.scheduler` of an experiment may leave out the arguments `initial_learning_rate`,
    `decay_steps`, `warmup_steps`, `alpha` and `then`: see `optimizer_factory.create_schedule`.
    """

    def learning_rate_at(self, step: float) -> float:
        """The learning rate at an optimizer step, counted from 0."""
        raise NotImplementedError

    @property
    def peak_learning_rate(self) -> float:
        """The highest learning rate.

        Torch optimizers are created with it; each step multiplies it by a factor of at most 1.
        """
        raise NotImplementedError

    @classmethod
    def example(cls) -> Schedule:
        """An instance for the contract tests."""
        raise NotImplementedError


class DecaySchedule(Schedule):
    """Linear warm-up, then decay to the lowest rate. Subclasses define the curve."""

    initial_learning_rate: float = float_field("The highest rate.", above=0, aliases=("initial",))
    decay_steps: int = int_field("Steps from the highest rate to the lowest.")
    alpha: float = float_field(
        "The lowest rate, as a fraction of the highest.", default=0.0, at_least=0, at_most=1
    )
    warmup_steps: int = int_field("Linear warm-up from 0 before that.", default=0, at_least=0)

    def remaining(self, progress: float) -> float:
        """Shape of the decay: falls from 1 to 0 while `progress` rises from 0 to 1."""
        raise NotImplementedError

    def learning_rate_at(self, step: float) -> float:
        """The learning rate at a step; constant after `warmup_steps` + `decay_steps`."""
        if step < self.warmup_steps:
            return self.initial_learning_rate * step / self.warmup_steps
        progress = min(1.0, (step - self.warmup_steps) / self.decay_steps)
        fraction = self.alpha + (1 - self.alpha) * self.remaining(progress)
        return self.initial_learning_rate * fraction

    @property
    def peak_learning_rate(self) -> float:
        """The rate after the warm-up."""
        return self.initial_learning_rate

    @classmethod
    def example(cls) -> Self:
        """Two steps of warm-up, five of decay."""
        return cls(initial_learning_rate=0.1, decay_steps=5, alpha=0.1, warmup_steps=2)
