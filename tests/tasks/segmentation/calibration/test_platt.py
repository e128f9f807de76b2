"""Platt scaling works on margins, not on probabilities."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from neural.tasks.segmentation.calibration.platt import Platt
from neural.tasks.segmentation.probability import probabilities_to_margins


def test_the_worked_example_is_on_the_margin_and_not_on_the_probability():
    fitted = Platt(scale=1.293, shift=0.0)
    assert fitted(probabilities_to_margins([0.99]))[0] == pytest.approx(0.9974, abs=5e-5)
    assert fitted([0.99])[0] == pytest.approx(0.78, abs=5e-3), "a probability used as a margin"


def test_it_is_logistic_regression():
    rng = np.random.default_rng(0)
    scores = rng.normal(-1, 2, 3000)
    truth = rng.random(3000) < 1 / (1 + np.exp(-(1.293 * scores + 0.4)))
    peer = LogisticRegression(C=np.inf, tol=1e-8).fit(scores[:, None], truth)
    fitted = Platt.fit(scores, truth)
    assert fitted.scale == pytest.approx(peer.coef_[0, 0], rel=2e-3)
    assert fitted.shift == pytest.approx(peer.intercept_[0], rel=5e-3)


def test_of_two_classes_the_second_is_yes():
    fitted = Platt(scale=2.0, shift=1.0)
    np.testing.assert_allclose(fitted([[1.0, 4.0]])[0, 1], fitted([3.0])[0])


def test_inverted_scores_get_a_scale_of_zero():
    assert Platt.fit([1.0, -1.0] * 20, [0, 1] * 20).scale == 0


def test_targets_of_one_class_give_a_finite_fit():
    fitted = Platt.fit(np.zeros(1000), np.zeros(1000))
    assert fitted([0.0])[0] == pytest.approx(0.5 / 1001, rel=1e-3), "half a hit in 1,001 elements"
