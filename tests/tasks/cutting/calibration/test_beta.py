"""Beta calibration: the map that Kull and others derive, found where both answers' scores are beta distributed."""

import numpy as np
import pytest

from neural.tasks.cutting.calibration.beta import Beta
from neural.tasks.cutting.calibration.platt import Platt
from neural.tasks.cutting.probability import log_loss, margins


def test_beta_distributed_scores_give_their_own_map():
    random = np.random.default_rng(0)
    yes, no = random.beta(5, 2, 20_000), random.beta(1, 3, 20_000)   # odds: p^(5-1) (1-p)^(2-3) times a constant
    scores, truth = margins(np.concatenate([yes, no])), np.repeat([1, 0], 20_000)
    fitted = Beta.fit(scores, truth)
    assert (fitted.a, fitted.b) == (pytest.approx(4, abs=0.25), pytest.approx(1, abs=0.2))


def test_it_bends_where_a_line_cannot():
    random = np.random.default_rng(0)
    yes, no = random.beta(5, 2, 5000), random.beta(1, 3, 5000)
    scores, truth = margins(np.concatenate([yes, no])), np.repeat([1, 0], 5000)
    assert log_loss(Beta.fit(scores, truth)(scores), truth) < log_loss(Platt.fit(scores, truth)(scores), truth) - 1e-3


def test_the_map_is_the_formula():
    p = np.array([0.1, 0.5, 0.9])
    wanted = 1 / (1 + 1 / (np.exp(0.3) * p**0.7 / (1 - p) ** 1.5))
    np.testing.assert_allclose(Beta(a=0.7, b=1.5, c=0.3)(margins(p)), wanted)


def test_neither_side_may_fall():
    fitted = Beta.fit([3.0, 2.0, 1.0, -1.0, -2.0, -3.0] * 20, [0, 1, 1, 0, 0, 1] * 20)
    assert fitted.a >= 0
    assert fitted.b >= 0
