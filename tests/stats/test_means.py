"""Means over few seeds with their intervals."""

import math

from neural.stats.means import SeedEstimate, estimate_mean, format_number


def test_the_value_is_the_mean_and_lies_inside_the_interval():
    estimate = estimate_mean([1.0, 2.0, 3.0, 4.0, 5.0])
    assert estimate.value == 3
    assert 0.5 < estimate.low < 3 < estimate.high < 5.5
    assert estimate.seeds == 5


def test_non_finite_values_are_ignored():
    assert estimate_mean([math.nan, 2.0, math.inf, 4.0]).seeds == 2


def test_one_seed_has_no_interval_and_none_has_no_mean():
    single, empty = estimate_mean([2.0]), estimate_mean([])
    assert (single.value, single.seeds) == (2, 1)
    assert math.isnan(single.low)
    assert math.isnan(empty.value)
    assert str(single) == "2"


def test_a_score_of_two_seeds_has_no_interval():
    estimate = estimate_mean([0.714, 0.948]).to_score("valid/accuracy")
    assert math.isclose(estimate.value, 0.831)
    assert math.isnan(estimate.low)
    assert math.isnan(estimate.high)


def test_the_interval_of_a_score_stays_inside_its_bounds():
    estimate = estimate_mean([0.7, 0.96, 0.9])
    assert estimate.low < 0
    assert estimate.high > 1
    share = estimate.to_score("valid/accuracy")
    assert (share.low, share.high, share.value) == (0, 1, estimate.value)
    loss = estimate.to_score("valid/loss")
    assert (loss.low, loss.high) == (0, estimate.high)
    assert estimate.to_score("valid/r2") == estimate
    negative = estimate_mean([-0.7, -0.96, -0.9])  # the own loss of a tracked model
    assert negative.to_score("valid/loss") == negative


def test_the_same_values_give_the_same_interval():
    assert estimate_mean([1.0, 5.0, 2.0]) == estimate_mean([1.0, 5.0, 2.0])


def test_numbers_are_printed_with_three_digits():
    texts = [format_number(value) for value in (0.12345, -12.345, 1999.6, math.nan, -4e-17)]
    assert texts == ["0.123", "−12.3", "2,000", "none", "0"]
    assert str(SeedEstimate(value=-0.5, low=-0.75, high=0.25, seeds=5)) == "−0.5 (−0.75 … 0.25)"
