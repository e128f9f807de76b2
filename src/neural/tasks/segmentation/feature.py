"""Base classes of features: named columns of numbers per element, computed from one document.

Elements are the sentences or lines of the document, n of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import ClassVar

import numpy as np

from neural.tasks.segmentation.document import SegmentationDocument
from neural.tasks.segmentation.tokenization import ElementTokens

SimilarityRows = Callable[[slice, slice], np.ndarray]
"""Block of a similarity matrix by row and column slice: float64, 0 (disjoint) to 1 (equal)."""
STATISTICS = (
    "mean",
    "maximum",
    "deviation",
    "upper_quartile",
    "upper_tenth",
    "share",
    "previous",
    "next",
    "first",
    "last",
    "lean",
    "match",
)
"""Statistics of an element's similarities to all others:

- mean, maximum and standard deviation
- the smallest similarity of the most similar quarter, and of the most similar tenth
- the share that is at least `SIMILAR_THRESHOLD`
- the similarity to the element before, the one after, the first, the last (0 if there is none, 1 to
  itself)
- lean: mean over the `NEIGHBOUR_RADIUS` elements after it minus the mean over those before
- match: position of the first most similar element, from 0 (first element) to 1 (last); its own
  position if nothing is similar
"""
SIMILAR_THRESHOLD = 0.5
"""Minimum similarity of an element that counts as similar."""
NEIGHBOUR_RADIUS = 4
"""Maximum distance of a neighbour, in elements."""
MAX_BLOCK_VALUES = 1 << 19
"""Maximum number of similarities in memory at once."""


class Feature(ABC):
    """A group of columns that are computed together."""

    columns: ClassVar[tuple[str, ...]]
    """Column names, in order."""
    version: ClassVar[int] = 1
    """Part of the cache key: increase it when the computed numbers change."""

    @abstractmethod
    def compute(self, document: SegmentationDocument, tokens: ElementTokens) -> np.ndarray:
        """One row per element, (n, columns). All values are finite, for any elements."""

    @classmethod
    def dependency_version(cls) -> str:
        """Optional package that the numbers depend on, such as a dictionary; "" for none."""
        return ""


class SelfSimilarity(Feature):
    """Twelve statistics of one self-similarity matrix of the elements."""

    columns: ClassVar[tuple[str, ...]] = STATISTICS

    @abstractmethod
    def make_row_function(self, tokens: ElementTokens) -> SimilarityRows:
        """Function that computes blocks of the matrix. The diagonal of the matrix is ignored."""

    def compute(self, document: SegmentationDocument, tokens: ElementTokens) -> np.ndarray:
        """Statistics of one document."""
        return self.compute_concatenated(tokens, [0, len(tokens)])

    def compute_concatenated(self, tokens: ElementTokens, edges: Sequence[int]) -> np.ndarray:
        """Statistics of several documents whose elements are concatenated.

        `edges` are the first elements of the documents, and the total. Only elements of the same
        document are compared, in blocks of rows.
        """
        # Imported here, because kernels.py imports numba.
        from neural.tasks.segmentation.kernels import summarize_similarities

        out = np.zeros((len(tokens), len(STATISTICS)))
        compute_block = self.make_row_function(tokens)
        for low, high in pairwise(edges):
            count = high - low
            block_rows = max(1, MAX_BLOCK_VALUES // max(1, count))
            for first in range(low, high, block_rows) if count > 1 else ():
                block = compute_block(slice(first, min(first + block_rows, high)), slice(low, high))
                summarize_similarities(
                    block, first - low, SIMILAR_THRESHOLD, NEIGHBOUR_RADIUS, out[low:high]
                )
        return out


def windowed_mean(values: np.ndarray, radius: int) -> np.ndarray:
    """Mean over the values at most `radius` positions away, along the first axis.

    The value itself is included.
    """
    count = len(values)
    sums = np.concatenate(
        [np.zeros((1, *values.shape[1:])), np.cumsum(values, axis=0, dtype=np.float64)]
    )
    first = np.maximum(np.arange(count) - radius, 0)
    last = np.minimum(np.arange(count) + radius + 1, count)
    width = (last - first).reshape(-1, *[1] * (values.ndim - 1))
    return (sums[last] - sums[first]) / width


def make_agreement_rows(loose: np.ndarray, strict: np.ndarray) -> SimilarityRows:
    """Similarity 1 for equal strict keys, 0.5 for equal loose keys only, else 0.

    There is one key of each kind per element; equal strict keys should imply equal loose ones. The
    key −1 equals no other key.
    """
    # Every −1 becomes a different negative number.
    loose_keys = np.where(loose < 0, -1 - np.arange(len(loose)), loose)
    strict_keys = np.where(strict < 0, -1 - np.arange(len(strict)), strict)

    def compute_rows(rows: slice, columns: slice) -> np.ndarray:
        similarity = (strict_keys[rows, None] == strict_keys[columns]).astype(np.float64)
        similarity += loose_keys[rows, None] == loose_keys[columns]
        similarity *= 0.5
        return similarity

    return compute_rows


def combine_keys(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """One key for a pair of keys: equal if both are equal; −1 if the first is −1."""
    return np.where(
        first < 0, -1, first.astype(np.int64) * (second.max(initial=0) + 2) + second + 1
    )
