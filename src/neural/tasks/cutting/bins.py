"""Numbers into bins, and what came together in each."""

from __future__ import annotations

import numpy as np


def equal_width_edges(bins: int) -> np.ndarray:
    """The edges between bins of one width, from 0 to 1; 1 itself lies in the last bin, not in one of its own."""
    return np.arange(1, bins) / bins


def equal_mass_edges(values: np.ndarray, bins: int) -> np.ndarray:
    """Edges that leave as many values in every bin as ties allow: equal values are never separated, no bin is empty.

    They lie halfway between two values: one that comes back a rounding error away stays in its bin.
    """
    ordered = np.sort(values)
    above = np.unique(np.searchsorted(ordered, ordered[np.arange(1, bins) * len(ordered) // bins]))
    above = above[above > 0]
    return (ordered[above - 1] + ordered[above]) / 2


def gathered(
    edges: np.ndarray, p: np.ndarray, hits: np.ndarray, documents: np.ndarray, count: int | None = None
) -> np.ndarray:
    """Of every document (numbered from 0) and bin: how many, their probabilities added up, and how many came true.

    The shape is (documents, 3, bins); sums over documents are those of the whole. `count`: how many documents there
    are, also such that have no element.
    """
    bins, number = len(edges) + 1, int(documents.max()) + 1 if count is None else count
    cell = documents * bins + np.searchsorted(edges, p, side="right")
    sums = [np.bincount(cell, weights=one, minlength=number * bins) for one in (np.ones_like(p), p, hits)]
    return np.stack(sums).reshape(3, number, bins).transpose(1, 0, 2)
