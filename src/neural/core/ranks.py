"""Ranks of values."""

from __future__ import annotations

import numpy as np


def rank_values(values: np.ndarray) -> np.ndarray:
    """Ranks from 1; equal values share their mean rank."""
    order = np.argsort(values)
    ascending = values[order]
    if (ascending[1:] > ascending[:-1]).all():  # all differ, and none is NaN
        ranks = np.empty(len(values))
        ranks[order] = np.arange(1, len(values) + 1)
        return ranks
    _, group, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (counts.cumsum() - (counts - 1) / 2)[group]
