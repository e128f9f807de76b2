"""Platt scaling works on margins; the worked example shows what goes wrong on probabilities."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from neural.tasks.cutting.calibration.platt import Platt
from neural.tasks.cutting.probability import margins


def test_the_worked_example_is_on_the_margin_and_not_on_the_probability():
    fitted = Platt(scale=1.293, shift=0.0)
    assert fitted(margins([0.99]))[0] == pytest.approx(0.9974, abs=5e-5)
    assert fitted([0.99])[0] == pytest.approx(0.78, abs=5e-3), "a probability taken for a margin"


def test_it_is_logistic_regression():
    random = np.random.default_rng(0)
    scores = random.normal(-1, 2, 3000)
    truth = random.random(3000) < 1 / (1 + np.exp(-(1.293 * scores + 0.4)))
    peer = LogisticRegression(C=np.inf, tol=1e-8).fit(scores[:, None], truth)
    fitted = Platt.fit(scores, truth)
    assert fitted.scale == pytest.approx(peer.coef_[0, 0], rel=2e-3)
    assert fitted.shift == pytest.approx(peer.intercept_[0], rel=5e-3)


def test_of_two_classes_the_second_is_yes():
    fitted = Platt(scale=2.0, shift=1.0)
    np.testing.assert_allclose(fitted([[1.0, 4.0]])[0, 1], fitted([3.0])[0])


def test_scores_that_say_the_opposite_are_not_turned_around():
    assert Platt.fit([1.0, -1.0] * 20, [0, 1] * 20).scale == 0


def test_one_answer_only_moves_towards_it_and_stays_finite():
    fitted = Platt.fit(np.zeros(1000), np.zeros(1000))
    assert fitted([0.0])[0] == pytest.approx(0.5 / 1001, rel=1e-3), "as if half an element of 1,001 had come true"
