"""Base class of segmentation baselines: untrained methods that trained models are compared with.

An element is a sentence or line of a document; a boundary is an element where a segment begins.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy.typing as npt

from neural.language.declaration import RegistryEntry
from neural.tasks.segmentation.boundary_encoding import Boundaries


class SegmentationBaseline(RegistryEntry):
    """Base class of baselines, which predict boundaries from the elements alone.

    A `RegistryEntry` is a class that users name in lower case with its arguments, such as
    `every_k(length=8)`.
    """

    def predict(self, elements: Sequence[str]) -> Boundaries:
        """Predicted boundaries, bool (n,), of a document. ValueError if there are no elements."""
        if len(elements) == 0:
            raise ValueError("elements: a document needs at least one, got none")
        return self.find_boundaries(elements)

    def find_boundaries(self, elements: Sequence[str]) -> Boundaries:
        """The prediction itself; `predict` has checked that there is at least one element."""
        raise NotImplementedError

    @classmethod
    def from_training(cls, truths: Sequence[npt.ArrayLike]) -> Self:
        """Baseline with parameters taken from the boundaries of training documents.

        The default is for baselines without such parameters.
        """
        return cls()
