"""Base class of losses: which head activations they contain, and how they are computed."""

from __future__ import annotations

from typing import Any, ClassVar

from neural.language.declaration import LowercaseDeclaration


class Loss(LowercaseDeclaration):
    """A loss function."""

    fuses: ClassVar[frozenset[str]] = frozenset()
    """Head activations that the loss contains: it takes logits, which is exact and stable."""

    def head_problem(self, activation: str, units: int | None) -> tuple[str, str] | None:
        """Why this loss does not fit such a head, and a help; None where it fits."""
        return None

    def compute(self, scores: Any, target: Any) -> Any:
        """The mean loss, a scalar tensor. `scores` are logits where the activation is fused."""
        raise NotImplementedError

    @classmethod
    def example(cls) -> Loss:
        """An instance for the contract tests."""
        return cls()
