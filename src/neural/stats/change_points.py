"""Change points of a noisy series: piecewise constant levels, onsets and noise estimates.

A level is an interval in which the series has a constant mean, apart from noise.

`split_levels` finds the best piecewise constant fit. Every level costs a penalty, so that noise
alone does not create levels (optimal partitioning, Jackson et al., 2005). `find_onset` finds the
index since which a series has been at or above a threshold. It compares the means of levels with
the threshold, because noise may lift single values over it. Rates of false alarms are simulated in
tests/validity/.
"""

from __future__ import annotations

import math

import numpy as np

LEVEL_PENALTY = 3.0
"""A level of a series of length n costs LEVEL_PENALTY · log n times the noise variance.

The BIC charges log n per parameter. A level has two, its mean and its start; 3 instead of 2 because
the start is the best of n candidates.
"""
MIN_PENALTY_LENGTH = 20
"""Shorter series use the penalty of this length: their noise estimate is less certain."""
MAD_TO_STD = 1.4826
"""Standard deviation of normal noise divided by its median absolute deviation."""


def split_levels(values: np.ndarray) -> list[int]:
    """The start index of each level, ascending; the first is 0. O(n²) time."""
    count = len(values)
    if count < 3:
        return [0] if count else []
    # the lower bounds keep the noise above 0, because the cost is divided by it
    noise = max(estimate_step_noise(values), 1e-3 * float(np.ptp(values)), 1e-12)
    penalty = LEVEL_PENALTY * math.log(max(count, MIN_PENALTY_LENGTH))
    sums, squares = (np.concatenate([[0.0], np.cumsum(series)]) for series in (values, values**2))
    # dynamic programming: best[end] is the cost of the best fit to the first `end` values, and
    # last_start[end] the start of its last level; −penalty at 0 makes the first level free
    best, last_start = np.full(count + 1, -penalty), np.zeros(count + 1, dtype=int)
    for end in range(1, count + 1):
        start = np.arange(end)
        residual = (squares[end] - squares[:end]) - (sums[end] - sums[:end]) ** 2 / (end - start)
        total = best[:end] + residual / noise**2 + penalty
        last_start[end] = int(np.argmin(total))
        best[end] = total[last_start[end]]
    # follow the starts back from the end; `count` itself is dropped and the order reversed
    starts = [count]
    while starts[-1] > 0:
        starts.append(int(last_start[starts[-1]]))
    return starts[:0:-1]


def has_level_shift(values: np.ndarray) -> bool:
    """Whether two levels fit a series better than a straight line does, by the BIC.

    A line has two parameters. Two levels have three: both means and the position of the change.
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

    The median absolute deviation ignores the few changes that are true changes of level.
    """
    changes = np.diff(values)
    # √2: a change contains the noise of two values
    return (
        float(MAD_TO_STD * np.median(np.abs(changes - np.median(changes))) / math.sqrt(2))
        if len(changes)
        else 0.0
    )


def estimate_curve_noise(values: np.ndarray) -> float:
    """The standard deviation of the noise around a smooth curve, from second differences.

    The smaller of two estimates, from all second differences and from the later half of them: at
    the start of training the curve bends so much that its second differences are not noise.
    """
    second_differences = np.abs(np.diff(values, 2))
    later_half = second_differences[len(second_differences) // 2 :]
    medians = [np.median(part) for part in (second_differences, later_half) if len(part)]
    # √6: a second difference a − 2b + c has 1 + 4 + 1 times the variance of one value
    return float(MAD_TO_STD * min(medians, default=0.0) / math.sqrt(6))
