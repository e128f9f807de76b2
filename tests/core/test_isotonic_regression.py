"""Isotonic regression equals that of scipy, blocks included."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import isotonic_regression

from neural.core.isotonic_regression import fit_isotonic

NUMBERS = st.floats(-1e3, 1e3) | st.integers(-3, 3).map(float)


@settings(deadline=None)
@given(st.lists(st.tuples(NUMBERS, st.integers(1, 50)), min_size=1, max_size=40))
def test_values_equal_those_of_scipy(rows):
    values, weights = np.array(rows).T
    expected = isotonic_regression(values, weights=weights).x
    series, starts = fit_isotonic(values, weights)
    np.testing.assert_allclose(series, expected, rtol=1e-12, atol=1e-9)
    assert (np.diff(series[starts]) > 0).all()


def test_blocks_equal_those_of_scipy():
    random = np.random.default_rng(0)
    for size in (1, 2, 7, 300):
        values, weights = random.integers(0, 9, size) / 8, random.integers(1, 5, size)
        series, starts = fit_isotonic(values, weights)
        expected = isotonic_regression(values, weights=weights)
        np.testing.assert_allclose(series, expected.x, atol=1e-14)
        assert starts.tolist() == expected.blocks[:-1].tolist()


def test_one_low_value_at_the_end_pulls_everything_down():
    series, starts = fit_isotonic(np.array([1.0, 2, 3, 4, -10]))
    assert series.tolist() == [0, 0, 0, 0, 0]
    assert starts.tolist() == [0]


@pytest.mark.parametrize("count", [0, 1])
def test_short_series_are_unchanged(count):
    series, starts = fit_isotonic(np.full(count, 3.0))
    assert series.tolist() == [3.0] * count
    assert starts.tolist() == list(range(count))
