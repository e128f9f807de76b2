"""A schedule of another package: the rate is halved every so many steps."""

from __future__ import annotations

from neural.language.declaration import float_field, int_field
from neural.optim.schedule import Schedule


class Staircase(Schedule):
    """Halve the learning rate every `every` steps."""

    initial_learning_rate: float = float_field("The rate at step 0.", above=0)
    every: int = int_field("Steps between two halvings.", default=4)

    def learning_rate_at(self, step):
        return self.initial_learning_rate * 0.5 ** (int(step) // self.every)

    @property
    def peak_learning_rate(self):
        return self.initial_learning_rate

    @classmethod
    def example(cls):
        return cls(initial_learning_rate=0.1)
