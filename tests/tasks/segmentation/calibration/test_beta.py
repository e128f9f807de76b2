"""Beta calibration: the map of Kull et al. is recovered from beta distributed scores."""

import numpy as np
import pytest

from neural.tasks.segmentation.calibration.beta import Beta
from neural.tasks.segmentation.calibration.platt import Platt
from neural.tasks.segmentation.probability import log_loss, probabilities_to_margins


def test_the_parameters_of_beta_distributed_scores_are_found():
    rng = np.random.default_rng(0)
    # odds: p^(5-1) (1-p)^(2-3) times a constant
    yes, no = rng.beta(5, 2, 20_000), rng.beta(1, 3, 20_000)
    scores, truth = probabilities_to_margins(np.concatenate([yes, no])), np.repeat([1, 0], 20_000)
    fitted = Beta.fit(scores, truth)
    assert (fitted.a, fitted.b) == (pytest.approx(4, abs=0.25), pytest.approx(1, abs=0.2))


def test_it_fits_curved_maps_better_than_platt():
    rng = np.random.default_rng(0)
    yes, no = rng.beta(5, 2, 5000), rng.beta(1, 3, 5000)
    scores, truth = probabilities_to_margins(np.concatenate([yes, no])), np.repeat([1, 0], 5000)
    assert (
        log_loss(Beta.fit(scores, truth)(scores), truth)
        < log_loss(Platt.fit(scores, truth)(scores), truth) - 1e-3
    )


def test_the_map_is_the_formula():
    p = np.array([0.1, 0.5, 0.9])
    expected = 1 / (1 + 1 / (np.exp(0.3) * p**0.7 / (1 - p) ** 1.5))
    np.testing.assert_allclose(Beta(a=0.7, b=1.5, c=0.3)(probabilities_to_margins(p)), expected)


def test_the_map_is_monotonic():
    fitted = Beta.fit([3.0, 2.0, 1.0, -1.0, -2.0, -3.0] * 20, [0, 1, 1, 0, 0, 1] * 20)
    assert fitted.a >= 0
    assert fitted.b >= 0
