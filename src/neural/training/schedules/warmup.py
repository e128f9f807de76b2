"""A slow start (Goyal et al., 2017; Vaswani et al., 2017) before any rate or schedule."""

from __future__ import annotations

from neural.language.declaration import count, entry
from neural.language.kinds import Real
from neural.training.schedule import Schedule
from neural.training.schedules import registry as schedules


class Warmup(Schedule):
    """Rises along a line to the rate that follows, then hands over to it."""

    warmup_steps: int = count("Steps of rising from 0.")
    then: float | Schedule = entry(schedules, "The rate, or the schedule, that follows.", or_number=Real(above=0))

    def at(self, step: float) -> float:
        """The line meets what follows at its first value."""
        if step < self.warmup_steps:
            return self._after(0) * step / self.warmup_steps
        return self._after(step - self.warmup_steps)

    def _after(self, step: float) -> float:
        return self.then.at(step) if isinstance(self.then, Schedule) else self.then

    @property
    def peak(self) -> float:
        """That of what follows."""
        return self.then.peak if isinstance(self.then, Schedule) else self.then

    @classmethod
    def tiny(cls) -> Schedule:
        """Three steps up, then constant."""
        return cls(warmup_steps=3, then=0.1)
