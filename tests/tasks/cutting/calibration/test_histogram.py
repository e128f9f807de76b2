"""Histogram binning: the share of each bin, and one probability for all in it."""

import numpy as np
import pytest

from neural.tasks.cutting.calibration.histogram import BINS, Histogram


def test_a_bin_gets_its_share_with_one_element_of_pull():
    scores = np.repeat([-3.0, 3.0], 10)
    truth = [0] * 8 + [1] * 2 + [0] * 4 + [1] * 6
    fitted = Histogram.fit(scores, truth)
    own = 1 / (1 + np.exp(3))
    np.testing.assert_allclose(fitted.values, [(2 + own) / 11, (6 + 1 - own) / 11])
    np.testing.assert_allclose(fitted([-100, -0.1, 0.1, 100]), np.repeat(fitted.values, 2))


def test_bins_hold_as_many_elements_each():
    random = np.random.default_rng(0)
    scores = random.normal(0, 3, 3000)
    fitted = Histogram.fit(scores, random.random(3000) < 0.3)
    held = np.bincount(np.searchsorted(fitted.edges, scores))
    assert len(held) == BINS
    assert set(held) == {3000 // BINS}


def test_where_bins_would_be_worse_nothing_is_changed():
    random = np.random.default_rng(0)
    scores = random.normal(0, 8, 3000)
    sure_and_right = random.random(3000) < 1 / (1 + np.exp(-scores))
    assert Histogram.fit(scores, sure_and_right) == Histogram()


def test_values_must_fit_the_edges():
    with pytest.raises(ValueError, match="one value more than edges"):
        Histogram(edges=(0.0,), values=(0.5,))
