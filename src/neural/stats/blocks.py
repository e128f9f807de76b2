"""Standard error of the mean of correlated values in sequence, such as losses of text windows.

Neighbouring windows have similar losses: a hard passage is hard for several of them. The usual
standard error assumes independent values and is then far too small (by a factor of 5 on Python's
help texts). So the sequence is split into a few long blocks, and the error is that of the mean of
the block means (Ibragimov and Müller, 2010), corrected for the correlation of neighbouring blocks.
tests/validity/test_block_means.py checks the coverage by simulation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from neural.stats.estimate import Estimate

DEFAULT_BLOCKS = 8
"""Number of blocks: few, so that blocks are long and nearly independent. Confidence intervals use
Student's t distribution, which accounts for the small number."""
MAX_BLOCK_CORRELATION = 0.6
"""Largest correlation of neighbouring blocks that is corrected for. Its estimate from a few blocks
is noisy: with this limit the correction at most doubles the variance, approximately."""


MIN_BLOCK_LENGTH = 16
"""Fewest values of a block. Where neighbours correlate by .9, intervals of 95 % contain the mean of 8
to 12 values in 58 % of cases with blocks of two, of 40 values in 74 %; with blocks of 16 those of 40
values do in 93 %, and fewer than 32 values have no interval (tests/validity/test_block_means.py)."""


@dataclass(frozen=True, slots=True)
class BlockMean:
    """A mean with its standard error."""

    value: float
    standard_error: float
    """NaN with fewer than two blocks, or if all blocks are equal, which tells nothing."""
    blocks: int
    n: int
    """Number of values."""

    def estimate(self) -> Estimate:
        """With Student's t interval, which has the number of blocks − 1 degrees of freedom."""
        if self.blocks < 2:
            return Estimate(self.value, n=self.n)
        return Estimate.from_error(self.value, self.standard_error, self.blocks - 1, self.n)


def estimate_mean_by_blocks(
    values: np.ndarray, blocks: int = DEFAULT_BLOCKS, *, min_length: int = MIN_BLOCK_LENGTH
) -> BlockMean:
    """Mean and standard error of values in sequence, (n,); a block has at least `min_length`."""
    count = min(blocks, len(values) // min_length)
    mean = float(np.mean(values)) if len(values) else math.nan
    if count < 2:
        return BlockMean(mean, math.nan, count, len(values))
    block_means = np.array(
        [block.mean() for block in np.array_split(np.asarray(values, float), count)]
    )
    deviations = block_means - block_means.mean()
    squared_sum = float((deviations**2).sum())
    if squared_sum == 0:
        return BlockMean(mean, math.nan, count, len(values))
    lag_one = float((deviations[1:] * deviations[:-1]).sum()) / squared_sum
    # In short series the lag-one correlation ρ is estimated too low, by about (1 + 3ρ)/n (Marriott
    # and Pope, 1954).
    lag_one += (1 + 3 * lag_one) / count
    correlation = min(max(lag_one, 0.0), MAX_BLOCK_CORRELATION)
    independent_variance = squared_sum / (count - 1) / count
    # the variance of a mean of `count` values with this lag-one correlation
    variance = independent_variance * (1 + 2 * correlation * (1 - 1 / count))
    return BlockMean(mean, math.sqrt(variance), count, len(values))
