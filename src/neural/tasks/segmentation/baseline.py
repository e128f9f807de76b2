"""Base class of segmentation baselines: from the elements alone, without training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy.typing as npt

from neural.language.declaration import LowercaseDeclaration
from neural.tasks.segmentation.boundary_encoding import Boundaries


class SegmentationBaseline(LowercaseDeclaration):
    """An untrained segmenter that trained models are compared with."""

    def predict(self, elements: Sequence[str]) -> Boundaries:
        """Predicted boundaries. ValueError without elements."""
        if len(elements) == 0:
            raise ValueError("elements: a document needs at least one, got none")
        return self.find_boundaries(elements)

    def find_boundaries(self, elements: Sequence[str]) -> Boundaries:
        """Predicted boundaries of at least one element."""
        raise NotImplementedError

    @classmethod
    def from_training(cls, truths: Sequence[npt.ArrayLike]) -> Self:
        """Baseline with parameters from the boundaries of training documents; most have none."""
        return cls()
