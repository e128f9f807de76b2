"""Linear warm-up (Goyal et al., 2017; Vaswani et al., 2017) before any rate or schedule."""

from __future__ import annotations

from neural.language.argument_types import FloatType
from neural.language.declaration import entry_field, int_field
from neural.optim.schedule import Schedule
from neural.optim.schedules import registry as schedules


class Warmup(Schedule):
    """Linear warm-up from 0 to the rate that follows: a constant, or the start of a schedule."""

    warmup_steps: int = int_field("Steps of linear warm-up from 0.")
    then: float | Schedule = entry_field(
        schedules,
        "The constant rate, or the schedule, that follows the warm-up.",
        or_number=FloatType(above=0),
    )

    def learning_rate_at(self, step: float) -> float:
        """The learning rate at a step. The schedule `then` starts at the end of the warm-up."""
        if step < self.warmup_steps:
            return self._after(0) * step / self.warmup_steps
        return self._after(step - self.warmup_steps)

    def _after(self, step: float) -> float:
        return self.then.learning_rate_at(step) if isinstance(self.then, Schedule) else self.then

    @property
    def peak_learning_rate(self) -> float:
        """The peak rate of `then`."""
        return self.then.peak_learning_rate if isinstance(self.then, Schedule) else self.then

    @classmethod
    def example(cls) -> Schedule:
        """Three steps of warm-up, then constant."""
        return cls(warmup_steps=3, then=0.1)
