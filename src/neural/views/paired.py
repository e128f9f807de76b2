"""Two settings compared by pairs of seeds: the difference of their scores, seed by seed.

Both of a pair start from the same weights, see the same batches and are judged by the same held-out
data. What a seed does to both cancels out, so the interval is that of the difference alone.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import Literal

import numpy as np
from scipy.special import stdtrit

from neural.views.seeds import Estimate

Verdict = Literal["better", "worse", "undecided"]
CONFIDENCE = 0.95


def paired_difference(
    scores: Mapping[Hashable, float], baseline: Mapping[Hashable, float]
) -> Estimate:
    """The mean of score − baseline over the seeds that both have, with Student's t interval (95 %).

    Keys are seeds. NaN does not count. Of fewer than two shared seeds there is no interval.
    """
    both = [seed for seed in scores if seed in baseline]
    pairs = np.array([scores[seed] - baseline[seed] for seed in both], dtype=np.float64)
    pairs = pairs[np.isfinite(pairs)]
    count = len(pairs)
    if count < 2:
        return Estimate(
            value=float(pairs[0]) if count else math.nan, low=math.nan, high=math.nan, seeds=count
        )
    mean = float(pairs.mean())
    error = float(pairs.std(ddof=1)) / math.sqrt(count)
    reach = float(stdtrit(count - 1, (1 + CONFIDENCE) / 2)) * error
    return Estimate(value=mean, low=mean - reach, high=mean + reach, seeds=count)


def verdict(difference: Estimate, *, larger_is_better: bool) -> Verdict:
    """Better or worse than the baseline; undecided where the interval holds 0 or there is none."""
    if not (difference.low > 0 or difference.high < 0):
        return "undecided"
    return "better" if (difference.value > 0) == larger_is_better else "worse"
