"""Intervals over few seeds hold the truth as often as they say."""

import math

from neural.views.seeds import Estimate, number, over_seeds


def test_the_value_is_the_mean_and_lies_inside_the_interval():
    found = over_seeds([1.0, 2.0, 3.0, 4.0, 5.0])
    assert found.value == 3
    assert 0.5 < found.low < 3 < found.high < 5.5
    assert found.seeds == 5


def test_values_that_are_missing_do_not_count():
    assert over_seeds([math.nan, 2.0, math.inf, 4.0]).seeds == 2


def test_one_seed_has_no_interval_and_none_has_no_mean():
    one, none = over_seeds([2.0]), over_seeds([])
    assert (one.value, one.seeds) == (2, 1)
    assert math.isnan(one.low)
    assert math.isnan(none.value)
    assert str(one) == "2"


def test_the_same_values_give_the_same_interval():
    assert over_seeds([1.0, 5.0, 2.0]) == over_seeds([1.0, 5.0, 2.0])


def test_numbers_are_printed_with_three_digits():
    said = [number(one) for one in (0.12345, -12.345, 1999.6, math.nan, -4e-17)]
    assert said == ["0.123", "−12.3", "2,000", "none", "0"]
    assert str(Estimate(value=-0.5, low=-0.75, high=0.25, seeds=5)) == "−0.5 (−0.75 … 0.25)"
