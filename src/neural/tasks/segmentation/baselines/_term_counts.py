"""Term counts of elements (sentences or lines), for the baselines TextTiling and C99."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from neural.tasks.segmentation.tokenization import tokenize_elements


class TermCounts(NamedTuple):
    """How often elements use terms: the entries of a sparse matrix, (elements, terms).

    A term is the stem of a word, that is the word without its suffix; stop words are left out.
    Entries are sorted by term, then by element.
    """

    element_count: int
    elements: np.ndarray
    """Element of each entry, int64."""
    terms: np.ndarray
    """Term of each entry."""
    counts: np.ndarray
    """How often the element uses the term, float64."""

    def select_elements(self, start: int, end: int) -> TermCounts:
        """The entries of the elements `start` to `end` − 1, which count from 0 again."""
        is_inside = (self.elements >= start) & (self.elements < end)
        return TermCounts(
            end - start,
            self.elements[is_inside] - start,
            self.terms[is_inside],
            self.counts[is_inside],
        )

    def select_terms(self, is_selected: np.ndarray) -> TermCounts:
        """The entries of the terms for which `is_selected`, (terms,), is True."""
        is_inside = is_selected[self.terms]
        return TermCounts(
            self.element_count,
            self.elements[is_inside],
            self.terms[is_inside],
            self.counts[is_inside],
        )

    def sum_squares(self) -> np.ndarray:
        """Squared norm of the counts of each element, (elements,)."""
        return np.bincount(self.elements, self.counts**2, minlength=self.element_count)

    def to_dense(self) -> np.ndarray:
        """The matrix, with a column for each term that occurs, in ascending order."""
        terms, columns = np.unique(self.terms, return_inverse=True)
        dense = np.zeros((self.element_count, len(terms)))
        dense[self.elements, columns] = self.counts
        return dense

    def find_shared_terms(self, max_distance: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Pairs of elements that share a term, at most `max_distance` apart, once per shared term.

        Returns the first and the second element of each pair, and the product of their counts.
        """
        pairs = []
        first = np.arange(len(self.terms))
        # Entries of one term are neighbours: they are compared with the next one, the one after
        # it, and so on. An entry without a partner at one lag has none at larger lags.
        for lag in range(1, len(self.terms) + 1):
            first = first[first < len(self.terms) - lag]
            second = first + lag
            first = first[
                (self.terms[second] == self.terms[first])
                & (self.elements[second] - self.elements[first] <= max_distance)
            ]
            if not len(first):
                break
            pairs.append((first, first + lag))
        if not pairs:
            return np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0)
        first, second = (np.concatenate(entries) for entries in zip(*pairs, strict=True))
        product = self.counts[first] * self.counts[second]
        return self.elements[first], self.elements[second], product


def count_terms(elements: Sequence[str]) -> TermCounts:
    """Counts of the terms of every element."""
    terms = tokenize_elements(elements).stems.distinct
    order = np.argsort(terms.ids, kind="stable")
    entry_elements = np.repeat(np.arange(len(elements)), np.diff(terms.starts))
    return TermCounts(
        len(elements), entry_elements[order], terms.ids[order], terms.counts[order].astype(float)
    )
