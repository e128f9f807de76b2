"""The integral of a smooth positive function, asked for at many places, and turned round."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import brentq

from neural.tasks.focusing.theory.setting import Numbers

NODES, WEIGHTS = np.polynomial.legendre.leggauss(16)
NODES, WEIGHTS = (NODES + 1) / 2, WEIGHTS / 2
WIDEST, NARROWEST = 0.5, 1e-6
CLOSE = 1e-13
"""A piece is halved until its halves say the same, to this share of it."""
FAR = 1e15
"""Nothing is integrated beyond this value: what lies there is infinitely far."""


class Integral:
    """∫ of `density` from `start`: `integral(place)`, and `integral.place(value)` the other way.

    It is kept in pieces that are short enough for one Gauss rule each, and grows as far as it is asked.
    """

    def __init__(self, density: Callable[[np.ndarray], Numbers], start: float = 0.0) -> None:
        self.density = density
        self._edges, self._values = [start], [0.0]
        self._width = WIDEST

    def __call__(self, place: Numbers) -> np.ndarray:
        """The integral up to there; infinite where it is larger than `FAR`."""
        place = np.asarray(place, float)
        self._grow(lambda edge, _: edge < place.max(initial=0.0))
        edges, values = np.array(self._edges), np.array(self._values)
        piece = np.clip(np.searchsorted(edges, place, side="right") - 1, 0, len(edges) - 1)
        there = np.minimum(place, edges[-1])
        return np.where(place > edges[-1], np.inf, values[piece] + self._piece(edges[piece], there))

    def place(self, value: Numbers) -> np.ndarray:
        """Where the integral has this value (at most `FAR`): Newton's steps, kept inside the piece."""
        value = np.asarray(value, float)
        self._grow(lambda _, total: total < value.max(initial=0.0))
        edges, values = np.array(self._edges), np.array(self._values)
        piece = np.clip(np.searchsorted(values, value, side="right") - 1, 0, max(0, len(edges) - 2))
        begin, missing = edges[piece], value - values[piece]
        low, high = begin, edges[np.minimum(piece + 1, len(edges) - 1)]
        place = np.clip(begin + missing / self.density(begin), low, high)
        for _ in range(60):
            short = missing - self._piece(begin, place)
            low, high = np.where(short > 0, place, low), np.where(short < 0, place, high)
            better = place + short / self.density(place)
            better = np.where((better < low) | (better > high), (low + high) / 2, better)
            done = np.all(np.abs(better - place) <= 4e-16 * np.abs(better) + 1e-300)
            place = better
            if done:
                break
        return place

    def _piece(self, begin: np.ndarray, end: np.ndarray) -> np.ndarray:
        """One Gauss rule from each `begin` to its `end`."""
        width = end - begin
        return np.asarray(self.density(begin[..., None] + width[..., None] * NODES)) @ WEIGHTS * width

    def _grow(self, wanted: Callable[[float, float], bool]) -> None:
        while wanted(self._edges[-1], self._values[-1]) and self._values[-1] < FAR:
            begin, value = self._edges[-1], self._values[-1]
            while True:
                edges = begin + self._width * np.array([0.0, 0.5, 1.0])
                whole = self._piece(edges[:1], edges[2:])[0]
                halves = self._piece(edges[:-1], edges[1:]).sum()
                if abs(whole - halves) <= CLOSE * (halves + value) or self._width < NARROWEST:
                    break
                self._width /= 2
            self._edges.append(float(edges[2]))
            self._values.append(float(value + halves))
            self._width = min(WIDEST, 2 * self._width)


def root(function: Callable[[float], Numbers], low: float, high: float) -> float:
    """Where a function that changes its sign between the two is 0."""
    found: Any = brentq(function, low, high, xtol=1e-14, rtol=1e-15)
    return float(found)
