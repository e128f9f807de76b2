"""Base class of optimizers: their arguments, and the torch optimizers built from them.

A Declaration (language/declaration.py) is a class that `.neural` programs and settings call by
name, as in `AdamW(learning_rate=3e-4)`; its fields are the arguments.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Self

from neural.language.argument_types import FloatType
from neural.language.declaration import Declaration, entry_field, float_field
from neural.optim.schedule import Schedule
from neural.optim.schedules import registry as schedules

if TYPE_CHECKING:
    from torch.nn import Parameter
    from torch.optim import Optimizer as TorchOptimizer


class Optimizer(Declaration):
    """Base class of optimizers. An instance holds the arguments; `build` creates torch's."""

    learning_rate: float | Schedule = entry_field(
        schedules,
        "Step size: a number, or a schedule.",
        default=0.001,
        or_number=FloatType(above=0),
        aliases=("lr",),
    )
    clipnorm: float | None = float_field(
        "Gradients are scaled down so that their total norm is at most this.",
        default=None,
        above=0,
    )

    def learning_rate_at(self, step: float) -> float:
        """The learning rate at a step, counted from 0."""
        return (
            self.learning_rate.learning_rate_at(step)
            if isinstance(self.learning_rate, Schedule)
            else self.learning_rate
        )

    @property
    def peak_learning_rate(self) -> float:
        """The highest learning rate."""
        rate = self.learning_rate
        return rate.peak_learning_rate if isinstance(rate, Schedule) else rate

    def with_learning_rate(self, rate: float) -> Self:
        """The same optimizer with a constant learning rate.

        In optimizers with several learning rates, the others keep their ratio to this one.
        """
        return replace(self, learning_rate=rate)

    def peak_learning_rates(self) -> dict[str, float]:
        """The highest value of every learning rate, by the name of its argument."""
        return {"learning_rate": self.peak_learning_rate}

    def build(self, parameters: Iterable[tuple[str, Parameter]]) -> list[TorchOptimizer]:
        """Torch optimizers that together update each named parameter exactly once."""
        raise NotImplementedError

    @classmethod
    def example(cls) -> Optimizer:
        """An instance for the tests that run on every registered optimizer."""
        return cls()


def supports_fused(parameters: Iterable[Parameter]) -> bool:
    """Whether torch's fused Adam kernel, which is several times faster, takes these parameters."""
    return all(
        param.device.type in ("cpu", "cuda") and param.is_floating_point() for param in parameters
    )
