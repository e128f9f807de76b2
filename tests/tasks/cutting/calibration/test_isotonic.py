"""Isotonic regression: scikit-learn's, but for the pull that keeps the ends from 0 and 1."""

import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression

from neural.tasks.cutting.calibration.isotonic import Isotonic


def test_it_is_isotonic_regression():
    random = np.random.default_rng(0)
    scores = np.round(random.normal(0, 2, 5000), 2)
    truth = random.random(5000) < 1 / (1 + np.exp(-np.sin(scores) - scores))
    peer = IsotonicRegression(out_of_bounds="clip").fit(scores, truth)
    fitted = Isotonic.fit(scores, truth)
    gap = np.abs(fitted(scores) - peer.predict(scores))
    sizes = {value: (peer.predict(scores) == value).sum() for value in np.unique(peer.predict(scores))}
    allowed = [1.5 / (sizes[value] + 1) for value in peer.predict(scores)]
    assert (gap <= allowed).all(), "one element's worth of pull in every block, and a little where blocks then join"


def test_a_small_case_by_hand():
    fitted = Isotonic.fit([-2.0, -1.0, 1.0, 2.0], [0, 1, 0, 1])
    middle = (1 + 0.5) / 3                                  # −1 and 1 share a block, with a mean margin of 0
    ends = (0 + 1 / (1 + np.exp(2))) / 2, (1 + 1 / (1 + np.exp(-2))) / 2
    np.testing.assert_allclose(fitted([-9, -2, -1, 0, 1, 2, 9]), [ends[0], ends[0], *[middle] * 3, ends[1], ends[1]])
    np.testing.assert_allclose(fitted([1.5]), (middle + ends[1]) / 2, err_msg="straight between two blocks")


def test_no_end_is_certain():
    fitted = Isotonic.fit(np.linspace(-5, 5, 100), np.repeat([0, 1], 50))
    assert min(fitted.values) > 0
    assert max(fitted.values) < 1


def test_many_elements_make_few_points():
    random = np.random.default_rng(0)
    scores = random.normal(0, 2, 50_000)
    fitted = Isotonic.fit(scores, random.random(50_000) < 1 / (1 + np.exp(-scores)))
    assert len(fitted.margins) < 1000


def test_points_that_do_not_rise_are_refused():
    with pytest.raises(ValueError, match="must rise"):
        Isotonic(margins=(1.0, 0.0), values=(0.1, 0.2))
    with pytest.raises(ValueError, match="a value for each"):
        Isotonic(margins=(1.0,), values=())
