"""What every baseline promises: boundaries from the elements alone, the same ones every time, nothing trained."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy.typing as npt

from neural.language.declaration import Named
from neural.tasks.cutting.masses import Boundaries


class Baseline(Named):
    """A way to find parts without learning; every score of a trained model is shown beside its."""

    def boundaries(self, elements: Sequence[str]) -> Boundaries:
        """Where parts begin."""
        if len(elements) == 0:
            raise ValueError("elements: a document needs at least one, got none")
        return self.find(elements)

    def find(self, elements: Sequence[str]) -> Boundaries:
        """The same, of at least one element."""
        raise NotImplementedError

    @classmethod
    def of(cls, truths: Sequence[npt.ArrayLike]) -> Self:
        """The baseline as it is after a look at the parts of training documents: most have nothing to take from it."""
        return cls()
