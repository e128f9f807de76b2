"""Base classes of features: named columns of numbers per element, computed from one document.

Elements are the sentences or lines of the document, n of them. A self-similarity matrix, (n, n),
holds the similarity of every pair of elements; it is computed in blocks of rows to save memory.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import ClassVar

import numpy as np

from neural.tasks.segmentation.document import SegmentationDocument
from neural.tasks.segmentation.kernels import summarize_similarities
from neural.tasks.segmentation.tokenization import ElementTokens

SimilarityFunction = Callable[[slice, slice], np.ndarray]
"""(rows, columns) → this block of a self-similarity matrix: float64, 0 (disjoint) to 1 (equal)."""
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
"""Column names: statistics of an element's similarities to all other elements.

- mean, maximum, deviation: mean, maximum and standard deviation
- upper_quartile, upper_tenth: the smallest similarity in the most similar quarter, or tenth
- share: the fraction of elements with a similarity of at least `SIMILAR_THRESHOLD`
- previous, next: the similarity to the element before and after; 0 if there is none
- first, last: the similarity to the first and the last element; 1 if it is that element itself
- lean: mean over the `NEIGHBOUR_RADIUS` elements after it minus the mean over those before it
- match: position of the most similar element (the first of several), from 0 (first element) to 1
  (last element); its own position if all similarities are 0
"""
SIMILAR_THRESHOLD = 0.5
"""Minimum similarity of elements that `share` counts as similar."""
NEIGHBOUR_RADIUS = 4
"""Number of elements on either side that `lean` compares."""
MAX_BLOCK_VALUES = 1 << 19
"""Maximum number of similarities in a block."""


class Feature(ABC):
    """Base class of features: a group of columns that are computed together."""

    columns: ClassVar[tuple[str, ...]]
    """Column names, in order."""
    version: ClassVar[int] = 1
    """Part of the cache key: increase it when the computed numbers change."""

    @abstractmethod
    def compute(self, document: SegmentationDocument, tokens: ElementTokens) -> np.ndarray:
        """Feature table, (n, columns). All values are finite, for any elements.

        `tokens` are the words of the document's elements.
        """

    @classmethod
    def dependency_version(cls) -> str:
        """Name and version of an optional package that the numbers depend on; "" for none."""
        return ""


class SelfSimilarity(Feature):
    """Base class of features that are the twelve statistics of a self-similarity matrix."""

    columns: ClassVar[tuple[str, ...]] = STATISTICS

    @abstractmethod
    def make_similarity_function(self, tokens: ElementTokens) -> SimilarityFunction:
        """Function that computes any block of the matrix. Values on the diagonal are not used."""

    def compute(self, document: SegmentationDocument, tokens: ElementTokens) -> np.ndarray:
        """Statistics of one document, (n, 12)."""
        return self.compute_concatenated(tokens, [0, len(tokens)])

    def compute_concatenated(self, tokens: ElementTokens, edges: Sequence[int]) -> np.ndarray:
        """Statistics of several documents whose elements are concatenated, (all elements, 12).

        `edges` has the index of the first element of each document, and the number of all elements.
        Only elements of the same document are compared.
        """
        out = np.zeros((len(tokens), len(STATISTICS)))
        compute_block = self.make_similarity_function(tokens)
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
    """Moving average along the first axis, over the values at most `radius` positions away.

    The value itself is included; at the ends the window is cut off.
    """
    count = len(values)
    sums = np.concatenate(
        [np.zeros((1, *values.shape[1:])), np.cumsum(values, axis=0, dtype=np.float64)]
    )
    first = np.maximum(np.arange(count) - radius, 0)
    last = np.minimum(np.arange(count) + radius + 1, count)
    width = (last - first).reshape(-1, *[1] * (values.ndim - 1))
    return (sums[last] - sums[first]) / width


def make_key_similarity(loose: np.ndarray, strict: np.ndarray) -> SimilarityFunction:
    """Similarity function: 1 for equal strict keys, 0.5 for equal loose keys only, else 0.

    Each element has one integer key of each kind, for example the id of its last word (loose) and
    of its last two words (strict). Equal strict keys must imply equal loose keys. The key −1 is
    equal to no other key, not even to another −1.
    """
    # Replace every −1 by a different negative number.
    loose_keys = np.where(loose < 0, -1 - np.arange(len(loose)), loose)
    strict_keys = np.where(strict < 0, -1 - np.arange(len(strict)), strict)

    def compute_block(rows: slice, columns: slice) -> np.ndarray:
        similarity = (strict_keys[rows, None] == strict_keys[columns]).astype(np.float64)
        similarity += loose_keys[rows, None] == loose_keys[columns]
        similarity *= 0.5
        return similarity

    return compute_block


def combine_keys(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """One integer key for each pair of keys, (n,).

    Two results are equal exactly if both keys of the pairs are equal. The result is −1 if the first
    key is −1.
    """
    return np.where(
        first < 0, -1, first.astype(np.int64) * (second.max(initial=0) + 2) + second + 1
    )
