"""A noisy series as a few levels: where it changed for good, and how much it varies without changing.

`split_levels` finds the piecewise constant series that fits best, a new level costing as much as chance would gain by
it (optimal partitioning, Jackson et al., 2005). `onset` asks since when a score has been at or above a border: a steady
noisy score has been since the start, however often single values cross the border. False alarms and precision are
simulated in tests/validity/.
"""

from __future__ import annotations

import math

import numpy as np

COST_OF_LEVEL = 3.0
"""Times log n, in units of the noise's variance: a level and its place are two parameters, chosen among n."""
MIN_LENGTH = 20
"""A shorter series pays for a level as if it were so long: its noise is known less well."""


def split_levels(values: np.ndarray) -> list[int]:
    """The index at which each level begins; the first is 0. O(n²) time."""
    count = len(values)
    if count < 3:
        return [0] if count else []
    noise = max(step_noise(values), 1e-3 * float(np.ptp(values)), 1e-12)
    cost = COST_OF_LEVEL * math.log(max(count, MIN_LENGTH))
    sums, squares = (np.concatenate([[0.0], np.cumsum(series)]) for series in (values, values**2))
    best, begins = np.full(count + 1, -cost), np.zeros(count + 1, dtype=int)
    for end in range(1, count + 1):
        start = np.arange(end)
        inside = (squares[end] - squares[:end]) - (sums[end] - sums[:end]) ** 2 / (end - start)
        total = best[:end] + inside / noise**2 + cost
        begins[end] = int(np.argmin(total))
        best[end] = total[begins[end]]
    starts = [count]
    while starts[-1] > 0:
        starts.append(int(begins[starts[-1]]))
    return starts[:0:-1]


def beats_a_line(values: np.ndarray) -> bool:
    """Whether two levels fit a series better than a straight line, by the Bayesian information criterion.

    A line has two parameters; two levels have three: both and the place of the change.
    """
    count = len(values)
    if count < 4 or not np.isfinite(values).all():
        return False
    at = np.arange(count)
    line = float(((values - np.polyval(np.polyfit(at, values, 1), at)) ** 2).sum())
    levels = min(
        float(((values[:cut] - values[:cut].mean()) ** 2).sum() + ((values[cut:] - values[cut:].mean()) ** 2).sum())
        for cut in range(1, count)
    )
    floor = 1e-12 * max(float((values**2).sum()), 1e-300)   # a perfect line has no error to take the log of
    return count * math.log((levels + floor) / (line + floor)) + math.log(count) < 0


def last_level(values: np.ndarray) -> float:
    """The mean of the level that a series ends at."""
    return float(values[split_levels(values)[-1] :].mean())


def onset(values: np.ndarray, border: float) -> int | None:
    """The index since which all levels are at or above a border; None where the last one is not."""
    starts = split_levels(values)
    means = [float(values[start:end].mean()) for start, end in zip(starts, [*starts[1:], len(values)], strict=True)]
    if not means or means[-1] < border:
        return None
    below = [number for number, mean in enumerate(means) if mean < border]
    return starts[below[-1] + 1] if below else 0


def step_noise(values: np.ndarray) -> float:
    """The standard deviation of noise around levels: of the changes from one value to the next, few of which are real.

    By their median absolute deviation, so that the real ones do not count.
    """
    changes = np.diff(values)
    return float(1.4826 * np.median(np.abs(changes - np.median(changes))) / math.sqrt(2)) if len(changes) else 0.0


def curve_noise(values: np.ndarray) -> float:
    """The standard deviation of noise around a smooth curve: of its second differences, in its calmer half.

    At the beginning of a training the curve bends so much that its second differences are no noise.
    """
    bends = np.abs(np.diff(values, 2))
    halves = [half for half in (bends, bends[len(bends) // 2 :]) if len(half)]
    return float(1.4826 * min((np.median(half) for half in halves), default=0.0) / math.sqrt(6))
