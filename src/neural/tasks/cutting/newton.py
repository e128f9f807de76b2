"""The lowest point of a smooth convex function of a few numbers, each within bounds: Newton's steps, projected."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Surface = Callable[[np.ndarray], tuple[float, np.ndarray, np.ndarray]]
"""Numbers → height, slope and curvature there."""

STEPS = 100
EXACT = 1e-13
"""It ends where a step could gain no more than this share of the height."""


def lowest(surface: Surface, start: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """Where the function is lowest within the bounds (Bertsekas, 1982: what a bound holds takes no part in the step).

    The function is never higher there than at `start`. Directions in which it is flat are left as they are.
    """
    at = start.clip(lower, upper)
    height, slope, curvature = surface(at)
    for _ in range(STEPS):
        free = ~((at <= lower) & (slope >= 0)) & ~((at >= upper) & (slope <= 0))
        step = _newton_step(slope, curvature, free)
        gain = float(-slope @ step)
        if gain <= EXACT * (1 + abs(height)):
            break
        share = 1.0
        while share > 1e-10:
            there = (at + share * step).clip(lower, upper)
            found = surface(there)
            if found[0] <= height + 1e-4 * float(slope @ (there - at)):
                break
            share /= 2
        else:   # as low as floats can tell
            break
        at, (height, slope, curvature) = there, found
    return at


def _newton_step(slope: np.ndarray, curvature: np.ndarray, free: np.ndarray) -> np.ndarray:
    step = np.zeros_like(slope)
    size = np.sqrt(np.diag(curvature))
    free = free & (size > 0)
    if free.any():
        # in units in which every curvature is 1; the little on the diagonal takes the place of what two numbers share
        scaled = curvature[np.ix_(free, free)] / np.outer(size[free], size[free])
        step[free] = -np.linalg.solve(scaled + 1e-9 * np.eye(free.sum()), slope[free] / size[free]) / size[free]
    return step
