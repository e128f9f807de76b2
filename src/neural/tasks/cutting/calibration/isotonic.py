"""Isotonic regression: the best map that never falls (Zadrozny and Elkan, 2002), by pooling adjacent violators."""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np
from scipy.optimize import isotonic_regression
from scipy.special import expit

from neural.tasks.cutting.calibrated import PULL, OfMargins


class Isotonic(OfMargins):
    """Any map that never falls: straight between the points given, flat outside. Wants some thousand elements."""

    simplicity: ClassVar[int] = 6

    margins: tuple[float, ...] = ()
    values: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.margins) != len(self.values) or list(self.margins) != sorted(set(self.margins)):
            raise ValueError("the margins of an isotonic calibration must rise, with a value for each")

    @classmethod
    def learned_from(cls, margins: np.ndarray, truth: np.ndarray) -> Self:
        """Blocks of margins that share one probability; each is pulled by one element's worth towards its mean margin.

        So the ends are never exactly 0 or 1. The blocks at their mean margins are no worse than the margins alone (a
        block is where the truth does not rise), and the pulled ones no worse than those.
        """
        places, which, counts = np.unique(margins, return_inverse=True, return_counts=True)
        shares = np.bincount(which, weights=truth) / counts
        edges = isotonic_regression(shares, weights=counts).blocks[:-1]
        sizes = np.add.reduceat(counts, edges)
        hits = np.add.reduceat(shares * counts, edges)
        own = expit(np.add.reduceat(places * counts, edges) / sizes)
        values = isotonic_regression((hits + PULL * own) / (sizes + PULL), weights=sizes + PULL).x
        first, last = edges, np.append(edges[1:], len(places)) - 1
        ends = np.unique(np.stack([first, last]))   # of a block of one margin, both are one
        level = values[np.searchsorted(edges, ends, side="right") - 1]
        return cls(margins=tuple(places[ends].tolist()), values=tuple(level.tolist()))

    def yes(self, margins: np.ndarray) -> np.ndarray:
        """Read off the line."""
        return np.interp(margins, self.margins, self.values)
