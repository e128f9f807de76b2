"""The mean of values that stand in a row, such as the losses of windows of a text, and how far off it may be.

Neighbours are alike: a hard passage is hard for several windows. The usual standard error, which takes values for
independent, is then far too small (about five times on the handbook). So the row is cut into a few long blocks, and the
error is that of the mean of the block means (Ibragimov and Müller, 2010), with what the correlation of neighbouring
blocks adds. Simulated coverage is in tests/validity/test_block_means.py.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

BLOCKS = 8
"""Few, so that they are long; Student's t makes up for few."""


class BlockMean(NamedTuple):
    """A mean with its standard error."""

    mean: float
    standard_error: float
    """NaN where there are too few values."""
    blocks: int
    """That the error rests on: Student's t has one degree of freedom less."""


def block_mean(values: np.ndarray, blocks: int = BLOCKS) -> BlockMean:
    """Of values in their order; each block has at least two."""
    count = min(blocks, len(values) // 2)
    mean = float(np.mean(values)) if len(values) else math.nan
    if count < 2:
        return BlockMean(mean, math.nan, count)
    means = np.array([block.mean() for block in np.array_split(np.asarray(values, float), count)])
    away = means - means.mean()
    variance = float((away**2).sum())
    if variance == 0:
        return BlockMean(mean, 0.0, count)
    lag_one = float((away[1:] * away[:-1]).sum()) / variance
    lag_one += (1 + 3 * lag_one) / count   # it is biased towards −1/n in short series (Marriott and Pope, 1954)
    correlated = 1 + 2 * min(max(lag_one, 0.0), 0.6) * (1 - 1 / count)
    return BlockMean(mean, math.sqrt(variance / (count - 1) / count * correlated), count)
