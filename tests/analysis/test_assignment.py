"""The assignment has the smallest sum of costs: as in scipy, for any shape, with ties."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from scipy.optimize import linear_sum_assignment

from neural.analysis.assignment import solve_assignment

SHAPES = array_shapes(min_dims=2, max_dims=2, max_side=9)


@settings(deadline=None)
@given(arrays(float, SHAPES, elements=st.floats(-1e3, 1e3) | st.integers(0, 3).map(float)))
def test_the_sum_is_that_of_scipy(cost):
    rows, columns = solve_assignment(cost)
    assert len(rows) == len(set(rows)) == len(set(columns)) == min(cost.shape)
    assert (np.diff(rows) > 0).all()
    expected = cost[linear_sum_assignment(cost)].sum()
    assert cost[rows, columns].sum() == pytest.approx(expected, rel=1e-12, abs=1e-9)


@pytest.mark.parametrize("shape", [(1, 1), (40, 40), (5, 60), (60, 5)])
def test_without_ties_the_pairs_are_those_of_scipy(shape):
    cost = np.random.default_rng(0).random(shape)
    for indices, expected in zip(solve_assignment(cost), linear_sum_assignment(cost), strict=True):
        np.testing.assert_array_equal(indices, expected)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_costs_that_are_not_finite_are_refused(value):
    with pytest.raises(ValueError, match="finite"):
        solve_assignment(np.array([[1.0, value], [0.0, 1.0]]))
