"""The power that is promised is the power that simulated studies have."""

import math

import numpy as np
import pytest

from neural.views.power import power_of_correlation, power_of_mean, smallest_effect
from neural.views.seeds import over_seeds


@pytest.mark.parametrize("seeds", [5, 7, 10, 20])
def test_so_many_studies_find_the_smallest_effect(seeds):
    draw = np.random.default_rng(123)
    samples = draw.normal(smallest_effect(seeds), 1, (2000, seeds))
    found = np.mean([over_seeds(values).low > 0 for values in samples])
    assert 0.77 <= found <= 0.83


def test_no_effect_is_found_rarely_and_more_seeds_find_more():
    assert power_of_mean(5, 0.0) <= 0.04   # one side of a 95 % interval
    powers = [power_of_mean(seeds, 1.0) for seeds in (5, 7, 10, 20)]
    assert powers == sorted(powers)
    assert powers[-1] > 0.95


def test_fewer_than_five_seeds_find_nothing():
    assert power_of_mean(4, 100.0) == 0
    assert math.isnan(smallest_effect(4))
    assert power_of_correlation(4, 40, 0.9) == 0


def test_too_few_looks_find_no_correlation():
    assert power_of_correlation(5, 4, 0.9) == 0


def test_a_larger_correlation_is_found_more_often_and_none_rarely():
    none, strong = (power_of_correlation(5, 40, r, simulations=40) for r in (0.0, 0.7))
    assert none <= 0.15   # 5 %, counted in 40 studies
    assert strong >= 0.9
