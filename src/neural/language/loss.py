"""Base class of losses. A loss may contain the output activation, as cross-entropy does softmax."""

from __future__ import annotations

from typing import Any, ClassVar

from neural.language.declaration import RegistryEntry


class Loss(RegistryEntry):
    """A loss function."""

    fused_activations: ClassVar[frozenset[str]] = frozenset()
    """Output activations that the loss contains: it takes logits, which is numerically stable."""

    def output_problem(self, activation: str, units: int | None) -> tuple[str, str] | None:
        """(problem, help) if this loss does not fit such an output layer, else None.

        `units` is the width of the output layer, None if unknown.
        """
        return None

    def compute(self, logits: Any, target: Any) -> Any:
        """The mean loss, a scalar tensor.

        `logits` are the network's outputs before the activation, if the loss contains that, else
        its predictions.
        """
        raise NotImplementedError

    @classmethod
    def example(cls) -> Loss:
        """An instance for the tests that every loss must pass (tests/contract)."""
        return cls()
