"""Self-similarity of a document: how alike each element is to every other, told by twelve numbers per element.

The matrix is never written out: rows come in blocks, a block is summed up and forgotten. So memory grows with the
elements, and time with their square.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import ClassVar

import numpy as np

from neural.modules.late import late
from neural.tasks.cutting.document import Document
from neural.tasks.cutting.feature import Feature
from neural.tasks.cutting.words import Words

kernels = late("neural.tasks.cutting.kernels")
Rows = Callable[[slice, slice], np.ndarray]
"""Some rows of the matrix and some columns, float64, from 0 (nothing in common) to 1 (alike)."""
STATISTICS = (
    "mean", "maximum", "deviation", "upper_quartile", "upper_tenth", "share", "previous", "next", "first", "last",
    "lean", "match",
)  # fmt: skip
"""Of an element's similarity to all others:

mean, maximum and deviation · the smallest of the most similar quarter and of the most similar tenth · the share that
is at least `ALIKE` · the one before, the one after, the first, the last (0 where there is none, 1 for itself) · lean:
mean of the `NEAR` after it less the mean of those before · match: where the first of the most similar stands, from 0
(first element) to 1 (last); its own place where nothing is similar.
"""
ALIKE = 0.5
NEAR = 4
BLOCK = 1 << 19
"""Numbers of the matrix that are in memory at once."""


class Similarity(Feature):
    """Twelve statistics of one self-similarity matrix."""

    columns: ClassVar[tuple[str, ...]] = STATISTICS

    @abstractmethod
    def rows(self, words: Words) -> Rows:
        """The matrix, by its rows; the diagonal is not looked at."""

    def compute(self, document: Document, words: Words) -> np.ndarray:
        """Of one document."""
        return self.between(words, [0, len(words)])

    def between(self, words: Words, edges: Sequence[int]) -> np.ndarray:
        """Of several documents whose words stand end to end; `edges` are where they begin, and the end of the last.

        Only elements of one document are compared, block after block.
        """
        out = np.zeros((len(words), len(STATISTICS)))
        rows = self.rows(words)
        for low, high in pairwise(edges):
            count = high - low
            size = max(1, BLOCK // max(1, count))
            for first in range(low, high, size) if count > 1 else ():
                block = rows(slice(first, min(first + size, high)), slice(low, high))
                kernels.summarise(block, first - low, ALIKE, NEAR, out[low:high])
        return out


def agreement(loose: np.ndarray, strict: np.ndarray) -> Rows:
    """1 where two elements have the same strict key, 0.5 where only the loose one is the same; −1 agrees with none."""
    loosely = np.where(loose < 0, -1 - np.arange(len(loose)), loose)
    strictly = np.where(strict < 0, -1 - np.arange(len(strict)), strict)

    def rows(some: slice, among: slice) -> np.ndarray:
        same = (strictly[some, None] == strictly[among]).astype(np.float64)
        same += loosely[some, None] == loosely[among]
        same *= 0.5
        return same

    return rows


def paired(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """One number for two: the same where both are the same; −1 where the first is."""
    return np.where(first < 0, -1, first.astype(np.int64) * (second.max(initial=0) + 2) + second + 1)
