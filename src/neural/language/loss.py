"""What every loss declares: which heads it understands, and how it compares scores with targets."""

from __future__ import annotations

from typing import Any, ClassVar

from neural.language.declaration import Named


class Loss(Named):
    """How wrong a prediction is: one number to make smaller."""

    fuses: ClassVar[frozenset[str]] = frozenset()
    """Head activations that the loss contains: it takes the scores before them, which is exact and stable."""

    def head_problem(self, activation: str, units: int | None) -> tuple[str, str] | None:
        """Why this loss cannot judge such a head, and a way out; None where it can."""
        return None

    def measure(self, scores: Any, target: Any) -> Any:
        """The mean loss, a tensor with one number. `scores` are before the activation where it is fused."""
        raise NotImplementedError

    @classmethod
    def tiny(cls) -> Loss:
        """An instance for the contract tests."""
        return cls()
