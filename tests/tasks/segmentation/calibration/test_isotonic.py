"""Isotonic regression: that of scikit-learn, except for the prior that avoids 0 and 1."""

import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression

from neural.tasks.segmentation.calibration.isotonic import Isotonic


def test_it_is_close_to_scikit_learn():
    rng = np.random.default_rng(0)
    scores = np.round(rng.normal(0, 2, 5000), 2)
    truth = rng.random(5000) < 1 / (1 + np.exp(-np.sin(scores) - scores))
    peer = IsotonicRegression(out_of_bounds="clip").fit(scores, truth)
    expected = peer.predict(scores)
    block_sizes = dict(zip(*np.unique(expected, return_counts=True), strict=True))
    # a prior of one element per block, and a little more where blocks merge
    tolerance = [1.5 / (block_sizes[value] + 1) for value in expected]
    assert (np.abs(Isotonic.fit(scores, truth)(scores) - expected) <= tolerance).all()


def test_a_small_case_by_hand():
    fitted = Isotonic.fit([-2.0, -1.0, 1.0, 2.0], [0, 1, 0, 1])
    middle = (1 + 0.5) / 3  # −1 and 1 share a block, with a mean margin of 0
    ends = (0 + 1 / (1 + np.exp(2))) / 2, (1 + 1 / (1 + np.exp(-2))) / 2
    np.testing.assert_allclose(
        fitted([-9, -2, -1, 0, 1, 2, 9]), [ends[0], ends[0], *[middle] * 3, ends[1], ends[1]]
    )
    np.testing.assert_allclose(
        fitted([1.5]), (middle + ends[1]) / 2, err_msg="straight between two blocks"
    )


def test_no_value_is_certain():
    fitted = Isotonic.fit(np.linspace(-5, 5, 100), np.repeat([0, 1], 50))
    assert min(fitted.values) > 0
    assert max(fitted.values) < 1


def test_many_elements_give_few_points():
    rng = np.random.default_rng(0)
    scores = rng.normal(0, 2, 50_000)
    fitted = Isotonic.fit(scores, rng.random(50_000) < 1 / (1 + np.exp(-scores)))
    assert len(fitted.margins) < 1000


def test_points_that_do_not_increase_are_refused():
    with pytest.raises(ValueError, match="must increase"):
        Isotonic(margins=(1.0, 0.0), values=(0.1, 0.2))
    with pytest.raises(ValueError, match="a value for each"):
        Isotonic(margins=(1.0,), values=())
