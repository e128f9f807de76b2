"""Probabilities → the best segmentation whose parts are neither too short nor too long, by dynamic programming.

A boundary at element i gains log(p / (1 − p)) − log(t / (1 − t)), t being the threshold: more than 0 where p is above
it. The segmentation with the largest sum of gains is the likeliest one if every gap is a coin of its own. Without
limits it is every p above the threshold; with limits, cutting where it hurts least and not where a counter runs out.
"""

from __future__ import annotations

from collections import deque

import numpy as np
import numpy.typing as npt

from neural.tasks.cutting.masses import Boundaries

CERTAIN = 1e-15
"""A probability of 0 or 1 counts as this far from it: a limit on lengths must be able to overrule it."""


def decode(
    probabilities: npt.ArrayLike, *, least: int = 1, most: int | None = None, threshold: float = 0.5
) -> Boundaries:
    """Where parts begin: the best segmentation with `least` to `most` elements in every part.

    Where no segmentation keeps both limits, as with fewer than `least` elements, `most` is kept and `least` falls to
    the largest that can be. Of equally good segmentations the one with the longest last part is taken, and so on back.
    """
    gains = log_odds(probabilities) - float(log_odds([threshold], "threshold", ends=False)[0])
    count = len(gains)
    if least < 1 or (most is not None and most < least):
        raise ValueError(f"lengths of parts: 1 ≤ least ≤ most is needed, got least {least} and most {most}")
    longest = count if most is None else min(most, count)
    least = min(least, count // -(-count // longest))   # the fewest parts that `most` allows, all alike
    if least == 1 and longest == count:
        made = gains > 0
        made[0] = False
        return made
    return _walk_back(_best_starts(gains, least, longest))


def log_odds(
    probabilities: npt.ArrayLike, what: str = "probabilities", *, ends: bool = True
) -> npt.NDArray[np.float64]:
    """log(p / (1 − p)), finite; `ends`: whether 0 and 1 are allowed."""
    p = np.asarray(probabilities, float)
    if p.ndim != 1 or len(p) == 0:
        raise ValueError(f"{what}: one per element, at least one; got an array of shape {p.shape}")
    if not ((p >= 0) & (p <= 1) if ends else (p > 0) & (p < 1)).all():
        raise ValueError(f"{what}: from 0 to 1{'' if ends else ', neither of them'}; got {p.min():g} to {p.max():g}")
    p = np.clip(p, CERTAIN, 1 - CERTAIN)
    return np.log(p) - np.log1p(-p)


def _best_starts(gains: npt.NDArray[np.float64], least: int, most: int) -> list[int]:
    """For every end, where the part that ends there begins in the best segmentation up to there; −1 where none is.

    best(end) is the largest best(start) + gain(start) with least ≤ end − start ≤ most. `waiting` holds the starts that
    can still win, values falling from left to right, so that the best one is always the first: O(n) in all.
    """
    gain = gains.tolist()
    gain[0] = 0.0   # the document begins there in any case
    count = len(gain)
    starts = [-1] * (count + 1)
    value = [float("-inf")] * (count + 1)
    value[0] = 0.0   # from here on: best(start) + gain(start)
    waiting: deque[int] = deque()
    for end in range(least, count + 1):
        new = end - least
        worth = value[new]
        if worth > float("-inf"):
            while waiting and value[waiting[-1]] < worth:
                waiting.pop()
            waiting.append(new)
        if waiting and waiting[0] < end - most:
            waiting.popleft()
        if waiting:
            starts[end] = waiting[0]
            value[end] = value[waiting[0]] + (gain[end] if end < count else 0.0)
    return starts


def _walk_back(starts: list[int]) -> Boundaries:
    """The boundaries of the whole document, from the last part to the first."""
    made = np.zeros(len(starts) - 1, bool)
    at = starts[-1]
    while at > 0:
        made[at] = True
        at = starts[at]
    return made
