"""What every optimizer declares: its numbers, and the torch optimizers that use them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Self

from neural.language.declaration import Declared, entry, number
from neural.language.kinds import Real
from neural.training.schedule import Schedule
from neural.training.schedules import registry as schedules

if TYPE_CHECKING:
    from torch.nn import Parameter
    from torch.optim import Optimizer as TorchOptimizer


class Optimizer(Declared):
    """How gradients become steps."""

    learning_rate: float | Schedule = entry(
        schedules, "Size of the steps: a number, or a schedule.",
        default=0.001, or_number=Real(above=0), aliases=("lr",),
    )  # fmt: skip
    clipnorm: float | None = number("Largest norm of all gradients together.", default=None, above=0)

    def rate(self, step: float) -> float:
        """The learning rate at a step, counted from 0."""
        return self.learning_rate.at(step) if isinstance(self.learning_rate, Schedule) else self.learning_rate

    @property
    def peak(self) -> float:
        """The highest learning rate."""
        rate = self.learning_rate
        return rate.peak if isinstance(rate, Schedule) else rate

    def at_rate(self, rate: float) -> Self:
        """The same with a constant learning rate. Its other rates keep their ratio to it."""
        return replace(self, learning_rate=rate)

    def rates(self) -> dict[str, float]:
        """The highest value of every learning rate, by the name of its setting."""
        return {"learning_rate": self.peak}

    def build(self, parameters: Iterable[tuple[str, Parameter]]) -> list[TorchOptimizer]:
        """One torch optimizer, or several for several kinds of parameters, for named parameters."""
        raise NotImplementedError

    @classmethod
    def tiny(cls) -> Optimizer:
        """An instance for the contract tests."""
        return cls()


def in_one_pass(parameters: Iterable[Parameter]) -> bool:
    """Whether torch makes a whole step of Adam in one pass over such parameters: several times faster."""
    return all(one.device.type in ("cpu", "cuda") and one.is_floating_point() for one in parameters)
