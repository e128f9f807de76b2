"""How optimistic the score of a selected setting is: the best of many is best by merit and by luck."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import chdtri, ndtr


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The best of several settings by its mean over seeds."""

    settings: int
    seeds: int
    """Of the selected setting."""
    noise: float
    """Standard deviation of one score, without what a seed does to all settings; NaN of one seed."""

    @property
    def optimism(self) -> float:
        """By how much the mean of the selected setting would be better than the truth if all were equal."""
        return self.noise * self.optimism_in_sd

    @property
    def optimism_in_sd(self) -> float:
        """The same in units of `noise`: 0.94 for 12 settings with 3 seeds."""
        return expected_maximum(self.settings) / math.sqrt(self.seeds)


def describe_selection(scores: Sequence[Mapping[Hashable, float]]) -> Selection:
    """Of the scores by seed of every setting, the selected one first.

    The noise comes from the differences between the selected setting and each other one, seed by
    seed: their variance is twice that of a score. The median over settings is taken, because some
    settings vary far more than those near the best.
    """
    selected = scores[0]
    variances = []
    for other in scores[1:]:
        pairs = [other[seed] - selected[seed] for seed in other if seed in selected]
        finite = np.array([difference for difference in pairs if math.isfinite(difference)])
        if len(finite) > 1:
            freedom = len(finite) - 1
            # sample variances are skewed: their median lies below the variance
            below = float(chdtri(freedom, 0.5)) / freedom
            variances.append(float(finite.var(ddof=1)) / 2 / below)
    noise = math.sqrt(float(np.median(variances))) if variances else math.nan
    return Selection(settings=len(scores), seeds=len(selected), noise=noise)


def expected_maximum(count: int) -> float:
    """The mean of the largest of so many standard normal values."""
    x = np.linspace(-10, 10, 4001)
    largest = ndtr(x) ** count
    return float(np.trapezoid(np.heaviside(x, 0.5) - largest, x))
