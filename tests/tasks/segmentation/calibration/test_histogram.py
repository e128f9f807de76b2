"""Histogram binning: one probability per bin, its observed frequency."""

import numpy as np
import pytest

from neural.tasks.segmentation.calibration.histogram import MAX_BINS, Histogram


def test_a_bin_gets_its_frequency_with_a_prior_of_one_element():
    scores = np.repeat([-3.0, 3.0], 10)
    truth = [0] * 8 + [1] * 2 + [0] * 4 + [1] * 6
    fitted = Histogram.fit(scores, truth)
    own = 1 / (1 + np.exp(3))
    np.testing.assert_allclose(fitted.values, [(2 + own) / 11, (6 + 1 - own) / 11])
    np.testing.assert_allclose(fitted([-100, -0.1, 0.1, 100]), np.repeat(fitted.values, 2))


def test_bins_have_equal_counts():
    rng = np.random.default_rng(0)
    scores = rng.normal(0, 3, 3000)
    fitted = Histogram.fit(scores, rng.random(3000) < 0.3)
    counts = np.bincount(np.searchsorted(fitted.edges, scores))
    assert len(counts) == MAX_BINS
    assert set(counts) == {3000 // MAX_BINS}


def test_the_identity_is_chosen_if_bins_are_worse():
    rng = np.random.default_rng(0)
    scores = rng.normal(0, 8, 3000)
    truth = rng.random(3000) < 1 / (1 + np.exp(-scores))
    assert Histogram.fit(scores, truth) == Histogram()


def test_values_must_match_the_edges():
    with pytest.raises(ValueError, match="one value more than edges"):
        Histogram(edges=(0.0,), values=(0.5,))
