"""What every feature promises: named columns of numbers per element, from the document alone."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from neural.tasks.cutting.document import Document
from neural.tasks.cutting.words import Words


class Feature(ABC):
    """A group of columns that are computed together."""

    columns: ClassVar[tuple[str, ...]]
    """What the numbers are called, in their order."""
    version: ClassVar[int] = 1
    """Counted up when the numbers change, so that what was kept on disk is not taken for them."""

    @abstractmethod
    def compute(self, document: Document, words: Words) -> np.ndarray:
        """A row per element, (n, columns). All numbers are finite, whatever the elements are."""

    @classmethod
    def made_with(cls) -> str:
        """What else the numbers depend on, such as a dictionary that may be installed or not."""
        return ""


def windowed_mean(values: np.ndarray, reach: int) -> np.ndarray:
    """The mean over the neighbours at most `reach` away, itself included; along the first axis."""
    count = len(values)
    sums = np.concatenate([np.zeros((1, *values.shape[1:])), np.cumsum(values, axis=0, dtype=np.float64)])
    first = np.maximum(np.arange(count) - reach, 0)
    last = np.minimum(np.arange(count) + reach + 1, count)
    width = (last - first).reshape(-1, *[1] * (values.ndim - 1))
    return (sums[last] - sums[first]) / width
