"""Base classes of learning-rate schedules: the learning rate as a function of the step.

A Declaration (language/declaration.py) is a class that programs and settings call by name; its
fields are the arguments.
"""

from __future__ import annotations

from typing import Self

from neural.language.declaration import Declaration, float_field, int_field


class Schedule(Declaration):
    """Base class: a learning rate that changes during training. Schedules have no state.

    An experiment (`training.scheduler`) may leave out the arguments `initial_learning_rate`,
    `decay_steps`, `warmup_steps`, `alpha`, and `then` of `Warmup`: they are then computed from the
    other training settings (`create_schedule` in optimizer_factory.py).
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
        """An instance for the tests that run on every registered schedule."""
        raise NotImplementedError


class DecaySchedule(Schedule):
    """Base class: linear warm-up, then decay to the lowest rate along a curve of the subclass."""

    initial_learning_rate: float = float_field("The highest rate.", above=0, aliases=("initial",))
    decay_steps: int = int_field("Steps from the highest rate to the lowest.")
    alpha: float = float_field(
        "The lowest rate, as a fraction of the highest.", default=0.0, at_least=0, at_most=1
    )
    warmup_steps: int = int_field(
        "Steps of linear warm-up from 0 to the highest rate, before the decay.",
        default=0,
        at_least=0,
    )

    def decay_factor(self, progress: float) -> float:
        """Curve of the decay: 1 (the highest rate) at `progress` 0, 0 (the lowest) at 1."""
        raise NotImplementedError

    def learning_rate_at(self, step: float) -> float:
        """The learning rate at a step, counted from 0; constant once the decay has ended."""
        if step < self.warmup_steps:
            return self.initial_learning_rate * step / self.warmup_steps
        progress = min(1.0, (step - self.warmup_steps) / self.decay_steps)
        fraction = self.alpha + (1 - self.alpha) * self.decay_factor(progress)
        return self.initial_learning_rate * fraction

    @property
    def peak_learning_rate(self) -> float:
        """The rate after the warm-up."""
        return self.initial_learning_rate

    @classmethod
    def example(cls) -> Self:
        """Two steps of warm-up, five of decay."""
        return cls(initial_learning_rate=0.1, decay_steps=5, alpha=0.1, warmup_steps=2)
