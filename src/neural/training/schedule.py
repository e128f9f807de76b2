"""What every schedule promises: the learning rate at a step, as a formula."""

from __future__ import annotations

from neural.language.declaration import Declared


class Schedule(Declared):
    """How the learning rate changes while training."""

    def at(self, step: float) -> float:
        """The rate at an optimizer step, counted from 0."""
        raise NotImplementedError

    @property
    def peak(self) -> float:
        """The rate that counts as full: an optimizer is made with it, a step takes a share of it."""
        raise NotImplementedError

    @classmethod
    def tiny(cls) -> Schedule:
        """An instance for the contract tests."""
        raise NotImplementedError
