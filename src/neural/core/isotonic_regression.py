"""Isotonic regression: the nearest series that never falls."""

from __future__ import annotations

import numpy as np


def fit_isotonic(
    values: np.ndarray, weights: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """The non-decreasing series with the smallest weighted squared distance, and its block starts.

    The series is constant within blocks, each the weighted mean of its values; means of successive
    blocks increase. Adjacent blocks that do not increase are pooled until there are none (pool
    adjacent violators). One pass pools all of them at once, and few passes are needed: about
    log n for noisy values, at worst n.
    """
    values = np.asarray(values, dtype=np.float64)
    sizes = np.ones(len(values)) if weights is None else np.asarray(weights, dtype=np.float64)
    sums, means, starts = values * sizes, values, np.arange(len(values))
    while True:
        is_first = np.concatenate([[True], means[1:] > means[:-1]])[: len(means)]
        if is_first.all():
            return np.repeat(means, np.diff(starts, append=len(values))), starts
        runs = np.flatnonzero(is_first)
        sums, sizes = np.add.reduceat(sums, runs), np.add.reduceat(sizes, runs)
        means, starts = sums / sizes, starts[runs]
