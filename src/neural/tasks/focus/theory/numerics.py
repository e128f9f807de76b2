"""Integrals of smooth positive functions at many points, their inverse, and root finding."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import brentq

from neural.tasks.focus.theory.setting import Numbers

NODES, WEIGHTS = np.polynomial.legendre.leggauss(16)
NODES, WEIGHTS = (NODES + 1) / 2, WEIGHTS / 2
"""Nodes and weights of the Gauss–Legendre quadrature on [0, 1]."""
MAX_PIECE_WIDTH, MIN_PIECE_WIDTH = 0.5, 1e-6
"""Largest and smallest width of a piece of the integration interval."""
MAX_NEWTON_STEPS = 60
RELATIVE_TOLERANCE = 1e-13
"""A piece is halved until its integral agrees with the sum over its halves to this error, or until
it is narrower than MIN_PIECE_WIDTH."""
MAX_INTEGRAL = 1e15
"""Integration stops at this value; points beyond it have an infinite integral."""


class InvertibleIntegral:
    """Integral of `density` from `start` to x: `integral(x)`; `integral.invert(value)` finds x.

    The interval is divided into pieces short enough for one Gauss rule each. Pieces are computed on
    demand and kept.
    """

    def __init__(self, density: Callable[[np.ndarray], Numbers], start: float = 0.0) -> None:
        self.density = density
        # ends of the pieces, and the integral up to each of them
        self._edges, self._values = [start], [0.0]
        self._width = MAX_PIECE_WIDTH

    def __call__(self, x: Numbers) -> np.ndarray:
        """Integral up to x; infinite beyond `MAX_INTEGRAL`."""
        x = np.asarray(x, float)
        self._extend(lambda edge, _: edge < x.max(initial=0.0))
        edges, values = np.array(self._edges), np.array(self._values)
        piece = np.clip(np.searchsorted(edges, x, side="right") - 1, 0, len(edges) - 1)
        end = np.minimum(x, edges[-1])
        return np.where(x > edges[-1], np.inf, values[piece] + self._integrate(edges[piece], end))

    def invert(self, value: Numbers) -> np.ndarray:
        """x at which the integral has this value (at most `MAX_INTEGRAL`).

        Newton's method; a step that leaves the bracket is replaced by bisection.
        """
        value = np.asarray(value, float)
        self._extend(lambda _, total: total < value.max(initial=0.0))
        edges, values = np.array(self._edges), np.array(self._values)
        piece = np.clip(np.searchsorted(values, value, side="right") - 1, 0, max(0, len(edges) - 2))
        begin, remainder = edges[piece], value - values[piece]
        low, high = begin, edges[np.minimum(piece + 1, len(edges) - 1)]
        x = np.clip(begin + remainder / self.density(begin), low, high)
        for _ in range(MAX_NEWTON_STEPS):
            residual = remainder - self._integrate(begin, x)
            low, high = np.where(residual > 0, x, low), np.where(residual < 0, x, high)
            newton = x + residual / self.density(x)
            newton = np.where((newton < low) | (newton > high), (low + high) / 2, newton)
            has_converged = np.all(np.abs(newton - x) <= 4e-16 * np.abs(newton) + 1e-300)
            x = newton
            if has_converged:
                break
        return x

    def _integrate(self, begin: np.ndarray, end: np.ndarray) -> np.ndarray:
        """Integrals from each `begin` to its `end`, by one Gauss rule each."""
        width = end - begin
        return (
            np.asarray(self.density(begin[..., None] + width[..., None] * NODES)) @ WEIGHTS * width
        )

    def _extend(self, is_needed: Callable[[float, float], bool]) -> None:
        """Append pieces while `is_needed(last edge, integral up to it)`."""
        while is_needed(self._edges[-1], self._values[-1]) and self._values[-1] < MAX_INTEGRAL:
            begin, value = self._edges[-1], self._values[-1]
            while True:
                edges = begin + self._width * np.array([0.0, 0.5, 1.0])
                one_piece = self._integrate(edges[:1], edges[2:])[0]
                halves = self._integrate(edges[:-1], edges[1:]).sum()
                if (
                    abs(one_piece - halves) <= RELATIVE_TOLERANCE * (halves + value)
                    or self._width < MIN_PIECE_WIDTH
                ):
                    break
                self._width /= 2
            self._edges.append(float(edges[2]))
            self._values.append(float(value + halves))
            self._width = min(MAX_PIECE_WIDTH, 2 * self._width)


def find_root(function: Callable[[float], Numbers], low: float, high: float) -> float:
    """Root of a function that changes its sign between `low` and `high`."""
    root: Any = brentq(function, low, high, xtol=1e-14, rtol=1e-15)
    return float(root)
