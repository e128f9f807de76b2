"""The only interval: invariants, bounds, JSON, and honest digits."""

import json
import math

import numpy as np
import pytest
from scipy import stats

from neural.stats.estimate import Estimate, format_number, summarize_simulations


@pytest.mark.parametrize(
    ("estimate", "text"),
    [
        (Estimate(0.8913, 0.8612, 0.9214, 5), "0.891 (0.861 … 0.921)"),
        (Estimate(0.8913, 0.80, 1.0, 5), "0.89 (0.80 … 1.00)"),
        (Estimate(-0.5, -0.75, 0.25, 5), "−0.5 (−0.8 … 0.2)"),
        (Estimate(12.345, 11.9, 12.8, 5), "12.35 (11.90 … 12.80)"),
        (Estimate(12345.6, 11000.0, 13600.0, 5), "12,346 (11,000 … 13,600)"),
        (Estimate(0.99961, 0.99953, 0.99964, 5), "0.99961 (0.99953 … 0.99964)"),
        (Estimate(1.5e-7, 1.1e-7, 1.9e-7, 5), "1.50e−07 (1.10e−07 … 1.90e−07)"),
        (Estimate(-0.0001, -0.02, 0.02, 5), "0.000 (−0.020 … 0.020)"),
        (Estimate(0.5, 0.5 - 1e-13, 0.5 + 1e-13, 5), "0.500000 (0.500000 … 0.500000)"),
        (Estimate(1.0, 1.0, 1.0, 5), "1 (1 … 1)"),
        (Estimate(2 / 3, n=5), "0.667"),
        (Estimate(math.nan, n=5), "none"),
        (Estimate(math.inf, math.nan, math.nan, 5), "none"),
    ],
)
def test_digits_are_those_that_the_width_of_the_interval_allows(estimate, text):
    assert str(estimate) == text


def test_a_difference_has_its_sign():
    estimate = Estimate(0.12, -0.03, 0.27, 5)
    assert estimate.format(signed=True) == "+0.12 (−0.03 … +0.27)"
    assert estimate.format_value(signed=True) == "+0.12"
    assert estimate.format_interval() == "−0.03 … 0.27"
    assert Estimate(0.1234, n=1).format(signed=True) == "+0.123"
    assert Estimate(0.1234).format_interval() == "–"


@pytest.mark.parametrize("n", [0, 1, 2])
def test_fewer_than_three_values_have_no_interval(n):
    estimate = Estimate(0.5, 0.4, 0.6, n)
    assert not estimate.has_interval
    assert str(estimate) == "0.5"


def test_the_interval_of_a_standard_error_is_students():
    estimate = Estimate.from_error(1.0, 0.1, 4, 5)
    assert (estimate.low, estimate.high) == pytest.approx(stats.t.interval(0.95, 4, 1.0, 0.1))
    assert not Estimate.from_error(1.0, math.nan, 4, 5).has_interval


@pytest.mark.parametrize(
    ("metric", "bounds"),
    [("test/f1", (0.0, 1.0)), ("valid/loss", (0.0, 2.5)), ("gain", (-0.5, 2.5))],
)
def test_a_score_has_its_interval_inside_its_bounds(metric, bounds):
    score = Estimate(0.9, -0.5, 2.5, 5).to_score(metric)
    assert (score.low, score.high) == bounds
    text = score.format_interval().replace("−", "-")
    assert [float(end) for end in text.split(" … ")] == list(bounds)


def test_a_value_outside_the_bounds_is_another_metric():
    assert Estimate(90.0, 85.0, 95.0, 5).to_score("accuracy").high == 95


def test_json_has_none_for_what_is_unknown():
    estimate = Estimate(math.inf, math.nan, math.nan, 4)
    assert estimate.to_dict("seeds") == {"value": None, "low": None, "high": None, "seeds": 4}
    saved = json.loads(json.dumps(Estimate(0.5, 0.4, 0.6, 7).to_dict()))
    assert Estimate.from_dict(saved, n=7) == Estimate(0.5, 0.4, 0.6, 7)
    assert not Estimate.from_dict(Estimate(0.5, n=7).to_dict(), n=7).has_interval


def test_other_units_convert_value_and_ends():
    assert Estimate(0.5, 0.25, 0.75, 3).to_percent() == Estimate(50.0, 25.0, 75.0, 3)
    assert Estimate(0.0, -1.0, 1.0, 3).map(math.exp).high == pytest.approx(math.e)


def test_simulations_have_a_central_range():
    values = np.arange(101.0)
    assert summarize_simulations(values) == Estimate(50.0, 5.0, 95.0, 101)


def test_numbers_are_printed_with_three_digits():
    texts = [format_number(value) for value in (0.12345, -12.345, 1999.6, math.nan, -4e-17)]
    assert texts == ["0.123", "−12.3", "2,000", "none", "0"]
    assert format_number(0.5, "+") == "+0.5"
