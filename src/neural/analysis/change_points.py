"""Change points of a noisy series: piecewise constant levels, onsets and noise estimates.

A level is an interval of constant mean. The factor 1.4826 turns a median absolute deviation into
the standard deviation of normal noise.

`split_levels` finds the best piecewise constant fit, with a penalty per level that chance alone
does not gain (optimal partitioning, Jackson et al., 2005). `find_onset` finds since when a score
has been at or above a threshold: by its levels, not by single values, which noise may lift over the
threshold. False alarms and precision are simulated in tests/validity/.
"""

from __future__ import annotations

import math

import numpy as np

LEVEL_PENALTY = 3.0
"""Penalty of a level, times log n, in units of the noise variance.

A level adds two parameters, its value and its start, chosen among n.
"""
MIN_PENALTY_LENGTH = 20
"""Shorter series use the penalty of this length: their noise estimate is less certain."""


def split_levels(values: np.ndarray) -> list[int]:
    """The start index of each level; the first is 0. O(n²) time."""
    count = len(values)
    if count < 3:
        return [0] if count else []
    # not 0 for a series without noise
    noise = max(estimate_step_noise(values), 1e-3 * float(np.ptp(values)), 1e-12)
    penalty = LEVEL_PENALTY * math.log(max(count, MIN_PENALTY_LENGTH))
    sums, squares = (np.concatenate([[0.0], np.cumsum(series)]) for series in (values, values**2))
    # dynamic programming: best[end] is the cost of the best fit to the first `end` values
    best, last_start = np.full(count + 1, -penalty), np.zeros(count + 1, dtype=int)
    for end in range(1, count + 1):
        start = np.arange(end)
        residual = (squares[end] - squares[:end]) - (sums[end] - sums[:end]) ** 2 / (end - start)
        total = best[:end] + residual / noise**2 + penalty
        last_start[end] = int(np.argmin(total))
        best[end] = total[last_start[end]]
    starts = [count]
    while starts[-1] > 0:
        starts.append(int(last_start[starts[-1]]))
    return starts[:0:-1]


def has_level_shift(values: np.ndarray) -> bool:
    """Whether two levels fit a series better than a straight line does, by the BIC.

    A line has two parameters; two levels have three: both values and the position of the change.
    """
    count = len(values)
    if count < 4 or not np.isfinite(values).all():
        return False
    index = np.arange(count)
    line_fit = np.polyval(np.polyfit(index, values, 1), index)
    line_error = float(((values - line_fit) ** 2).sum())
    level_error = min(
        float(
            ((values[:cut] - values[:cut].mean()) ** 2).sum()
            + ((values[cut:] - values[cut:].mean()) ** 2).sum()
        )
        for cut in range(1, count)
    )
    # a perfect line has error 0, whose logarithm is infinite
    floor = 1e-12 * max(float((values**2).sum()), 1e-300)
    ratio = (level_error + floor) / (line_error + floor)
    return count * math.log(ratio) + math.log(count) < 0


def estimate_last_level(values: np.ndarray) -> float:
    """The mean of the last level of a series."""
    return float(values[split_levels(values)[-1] :].mean())


def find_onset(values: np.ndarray, threshold: float) -> int | None:
    """The index since which all levels are at or above a threshold; None if the last one is not."""
    starts = split_levels(values)
    means = [
        float(values[start:end].mean())
        for start, end in zip(starts, [*starts[1:], len(values)], strict=True)
    ]
    if not means or means[-1] < threshold:
        return None
    below = [level for level, mean in enumerate(means) if mean < threshold]
    return starts[below[-1] + 1] if below else 0


def estimate_step_noise(values: np.ndarray) -> float:
    """The standard deviation of the noise around levels, from changes between neighbouring values.

    By the median absolute deviation, so that the few real changes of level do not count.
    """
    changes = np.diff(values)
    return (
        float(1.4826 * np.median(np.abs(changes - np.median(changes))) / math.sqrt(2))
        if len(changes)
        else 0.0
    )


def estimate_curve_noise(values: np.ndarray) -> float:
    """The standard deviation of the noise around a smooth curve, from second differences.

    The second half alone is used if its differences are smaller: at the start of training the curve
    bends so much that second differences are not noise.
    """
    second_differences = np.abs(np.diff(values, 2))
    later_half = second_differences[len(second_differences) // 2 :]
    medians = [np.median(part) for part in (second_differences, later_half) if len(part)]
    return float(1.4826 * min(medians, default=0.0) / math.sqrt(6))
