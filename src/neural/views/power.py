"""How likely a study with so many seeds is to find an effect of a given size.

    power_of_mean(seeds=5, effect=2.0)            # a mean that lies 2 standard deviations from 0
    power_of_correlation(seeds=5, steps=40, correlation=0.5)
    smallest_effect(seeds=5)                      # found in 80 % of studies

Effects on means are in standard deviations between seeds: how much one training differs from the
next, normally. A difference of .03 with a standard deviation of .02 is an effect of 1.5.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from neural.views.correlation import FEWEST_STEPS, Curve, correlate
from neural.views.seeds import FEWEST, over_seeds

USUAL_POWER = 0.8
"""Share of studies that should find an effect which is there."""
SIMULATIONS = 50
"""Of correlations."""
PERMUTATIONS = 400
INTERVALS = 4000
"""Simulated, of means."""


def power_of_mean(seeds: int, effect: float) -> float:
    """Share of studies whose interval of a mean excludes 0, for an effect in standard deviations.

    0 below five seeds: they decide nothing.
    """
    return float((_lower_ends(seeds) > -abs(effect)).mean()) if seeds >= FEWEST else 0.0


def smallest_effect(seeds: int, power: float = USUAL_POWER) -> float:
    """The effect on a mean, in standard deviations, that this share of studies finds; NaN below five seeds."""
    return -float(np.quantile(_lower_ends(seeds), 1 - power)) if seeds >= FEWEST else math.nan


@lru_cache
def _lower_ends(seeds: int) -> np.ndarray:
    """Lower ends of the intervals of normal seeds without an effect. An effect shifts them by itself."""
    random = np.random.default_rng(seeds)
    return np.array([over_seeds(values).low for values in random.standard_normal((INTERVALS, seeds))])


def power_of_correlation(
    seeds: int, steps: int, correlation: float, *, simulations: int = SIMULATIONS, seed: int = 0
) -> float:
    """Share of simulated studies in which `correlate` finds two measures related.

    Every seed's changes from one step to the next are random, and those of its two measures correlate as
    asked, around a trend that all seeds share. Nothing is measured with noise: with noise the power is lower.
    """
    if seeds < FEWEST or steps < FEWEST_STEPS:
        return 0.0
    random = np.random.default_rng(seed)
    number = np.arange(steps)
    trend = np.exp(-number / max(1.0, steps / 5)) * math.sqrt(steps)
    hits = 0
    for _ in range(simulations):
        first, own = random.standard_normal((2, seeds, steps))
        second = correlation * first + math.sqrt(1 - correlation**2) * own
        pairs = [
            (Curve(number, trend + a.cumsum()), Curve(number, trend + b.cumsum()))
            for a, b in zip(first, second, strict=True)
        ]
        hits += correlate(pairs, permutations=PERMUTATIONS).verdict == "related"
    return hits / simulations
