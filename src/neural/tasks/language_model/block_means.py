"""Mean of correlated values in sequence, such as losses of text windows, and its standard error.

Neighbouring windows are alike: a hard passage is hard for several of them. The usual standard
error, which assumes independent values, is then far too small (5 times on Python's help texts). So
the sequence is split into a few long blocks, and the error is that of the mean of the block means
(Ibragimov and Müller, 2010), corrected for the correlation of neighbouring blocks. Simulated
coverage is in tests/validity/test_block_means.py.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

DEFAULT_BLOCKS = 8
"""Few, so that blocks are long and nearly independent; Student's t accounts for that."""


class BlockMean(NamedTuple):
    """A mean with its standard error."""

    mean: float
    standard_error: float
    """NaN with fewer than 4 values."""
    blocks: int
    """Number of blocks; Student's t has one degree of freedom less."""


def compute_block_mean(values: np.ndarray, blocks: int = DEFAULT_BLOCKS) -> BlockMean:
    """Mean and standard error of values in sequence; each block has at least two values."""
    count = min(blocks, len(values) // 2)
    mean = float(np.mean(values)) if len(values) else math.nan
    if count < 2:
        return BlockMean(mean, math.nan, count)
    block_means = np.array(
        [block.mean() for block in np.array_split(np.asarray(values, float), count)]
    )
    deviations = block_means - block_means.mean()
    squared_sum = float((deviations**2).sum())
    if squared_sum == 0:
        return BlockMean(mean, 0.0, count)
    lag_one = float((deviations[1:] * deviations[:-1]).sum()) / squared_sum
    # In short series the estimate is biased towards −1/n (Marriott and Pope, 1954).
    lag_one += (1 + 3 * lag_one) / count
    # of the variance: clipped, because an estimate from a few blocks is noisy
    correlation_factor = 1 + 2 * min(max(lag_one, 0.0), 0.6) * (1 - 1 / count)
    return BlockMean(mean, math.sqrt(squared_sum / (count - 1) / count * correlation_factor), count)
