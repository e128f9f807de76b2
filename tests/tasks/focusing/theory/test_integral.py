"""Integrals that are asked for at many places, and turned round."""

import numpy as np
import pytest

from neural.tasks.focusing.theory.integral import FAR, Integral


def test_a_known_integral_both_ways():
    found = Integral(np.exp, 1.0)
    places = np.array([1.0, 1.3, 2.0, 17.7])
    assert found(places) == pytest.approx(np.exp(places) - np.e, rel=1e-13, abs=1e-14)
    assert found.place(found(places)) == pytest.approx(places, rel=1e-13)


def test_a_sudden_rise_is_not_missed():
    found = Integral(lambda x: 1 + 1e4 / (1 + (1e4 * (x - 3.2)) ** 2))
    assert found(10.0) == pytest.approx(10 + np.pi, rel=1e-4)
    steep = Integral(lambda x: 1 + 200 * (1 - np.tanh(200 * (x - 3.2)) ** 2))
    assert steep(10.0) == pytest.approx(12.0, rel=1e-11)


def test_what_is_too_far_is_infinitely_far():
    assert Integral(np.exp)(100.0) == np.inf
    assert np.isfinite(Integral(np.exp)(np.log(FAR) - 1))


def test_nothing_asked_nothing_given():
    found = Integral(np.exp)
    assert found(np.array([])).shape == found.place(np.array([])).shape == (0,)
