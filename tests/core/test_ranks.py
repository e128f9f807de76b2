"""Ranks equal those of scipy, ties included."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import rankdata

from neural.core.ranks import rank_values

NUMBERS = st.floats(allow_nan=False) | st.integers(-3, 3).map(float)


@settings(deadline=None)
@given(st.lists(NUMBERS, max_size=40))
def test_ranks_equal_those_of_scipy(values):
    np.testing.assert_array_equal(rank_values(np.array(values)), rankdata(values))


@pytest.mark.parametrize(
    ("values", "ranks"),
    [([], []), ([7.0], [1]), ([3.0, 1.0, 2.0], [3, 1, 2]), ([5.0, 1.0, 5.0, 5.0], [3, 1, 3, 3])],
)
def test_equal_values_share_their_mean_rank(values, ranks):
    assert rank_values(np.array(values)).tolist() == ranks
