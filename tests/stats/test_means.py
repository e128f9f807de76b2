"""Means over few seeds with their intervals."""

import math

from neural.stats.means import estimate_mean, estimate_share


def test_the_value_is_the_mean_and_lies_inside_the_interval():
    estimate = estimate_mean([1.0, 2.0, 3.0, 4.0, 5.0])
    assert estimate.value == 3
    assert 0.5 < estimate.low < 3 < estimate.high < 5.5
    assert estimate.n == 5


def test_non_finite_values_are_ignored():
    assert estimate_mean([math.nan, 2.0, math.inf, 4.0]).n == 2


def test_one_seed_has_no_interval_and_none_has_no_mean():
    single, empty = estimate_mean([2.0]), estimate_mean([])
    assert (single.value, single.n) == (2, 1)
    assert math.isnan(single.low)
    assert math.isnan(empty.value)
    assert str(single) == "2"


def test_two_seeds_have_no_interval():
    assert not estimate_mean([0.714, 0.948]).has_interval
    assert not estimate_share([1, 3], [4, 4]).has_interval


def test_the_same_values_give_the_same_interval():
    assert estimate_mean([1.0, 5.0, 2.0]) == estimate_mean([1.0, 5.0, 2.0])
