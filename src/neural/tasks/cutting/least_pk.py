"""Probabilities → the segmentation with the least expected Pk: what is best depends on what one is judged by.

Pk asks of every two elements k apart whether a boundary lies between. The likeliest segmentation leaves out boundaries
whose place is unsure, although it is all but sure that there is one near by; this one puts them where they cost least.
"""

from __future__ import annotations

from collections import deque

import numpy as np
import numpy.typing as npt

from neural.tasks.cutting.masses import Boundaries

SMALLEST = 1e-9


def least_pk(probabilities: npt.ArrayLike, k: int | None = None) -> Boundaries:
    """Boundaries of P(a part begins at this element), (n,), each taken as independent of the others; O(n).

    `k` is half the length of a part, by default of the parts that are to be expected.
    """
    p = np.asarray(probabilities, np.float64).clip(SMALLEST, 1 - SMALLEST)
    count = len(p)
    if count < 2:
        return np.zeros(count, bool)
    k = max(2, round(count / (2 * (1 + float(p[1:].sum()))))) if k is None else k
    k = min(k, count - 1)
    none = np.concatenate([[0.0, 0.0], np.cumsum(np.log1p(-p[1:]))])   # of elements 1 … i − 1
    probes = np.arange(count - k)
    apart = 1 - np.exp(none[probes + k + 1] - none[probes + 1])
    gain = np.zeros(count)   # of saying that a boundary lies between i and i + k, over saying that none does
    gain[: count - k] = 2 * apart - 1
    return _best(np.concatenate([[0.0], np.cumsum(gain)]).tolist(), count, k)


def _best(sums: list[float], count: int, k: int) -> Boundaries:
    """A boundary at b wins the probes b − k … b − 1; those that the one before it won are not won twice."""
    value, before = [0.0] * count, [0] * count
    near: deque[int] = deque([0])   # boundaries at most k back, the best by value − sums first
    far = -1                        # the best of those further back
    for at in range(1, count):
        low = max(0, at - k)
        if low > 0 and (far < 0 or value[low - 1] > value[far]):
            far = low - 1
        while near[0] < low:
            near.popleft()
        value[at], before[at] = value[near[0]] - sums[near[0]] + sums[at], near[0]
        if far >= 0 and (alone := value[far] + sums[at] - sums[low]) > value[at]:
            value[at], before[at] = alone, far
        while near and value[near[-1]] - sums[near[-1]] <= value[at] - sums[at]:
            near.pop()
        near.append(at)
    made = np.zeros(count, bool)
    at = int(np.argmax(value))
    while at > 0:
        made[at] = True
        at = before[at]
    return made
