"""Curves on one line of text."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

BLOCKS = "▁▂▃▄▅▆▇█"
"""Characters of a sparkline, from the lowest value to the highest."""


def draw_sparkline(
    steps: np.ndarray, values: np.ndarray, *, last: int, low: float, high: float, columns: int
) -> str:
    """A curve on one line of block characters.

    `columns` characters stand for the steps from 0 to `last`; heights go from `low` to `high`.
    Blank where there are no values.
    """
    import numpy as np

    means = bucket_means(steps, values, last=last, columns=columns)
    max_level = len(BLOCKS) - 1
    heights = (means - low) / (high - low) * max_level if high > low else np.zeros_like(means)
    return "".join(
        " " if math.isnan(height) else BLOCKS[round(min(max(height, 0.0), max_level))]
        for height in heights
    ).rstrip()


def bucket_means(steps: np.ndarray, values: np.ndarray, *, last: int, columns: int) -> np.ndarray:
    """The mean of the finite values in each of `columns` equal ranges of steps from 0 to `last`.

    Empty columns between two points are interpolated; before the first and after the last point
    the result is NaN.
    """
    import numpy as np

    is_finite = np.isfinite(values)
    steps, values = steps[is_finite], values[is_finite]
    column_of_step = np.clip((steps * columns // max(1, last + 1)).astype(int), 0, columns - 1)
    counts = np.bincount(column_of_step, minlength=columns)
    means = np.full(columns, np.nan)
    has_values = counts > 0
    sums = np.bincount(column_of_step, weights=values, minlength=columns)
    means[has_values] = sums[has_values] / counts[has_values]
    if has_values.any():
        filled_columns = np.flatnonzero(has_values)
        inner_columns = np.arange(filled_columns[0], filled_columns[-1] + 1)
        means[inner_columns] = np.interp(inner_columns, filled_columns, means[filled_columns])
    return means
