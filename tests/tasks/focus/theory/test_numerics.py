"""Invertible integrals."""

import numpy as np
import pytest

from neural.tasks.focus.theory.numerics import MAX_INTEGRAL, InvertibleIntegral


def test_a_known_integral_both_ways():
    integral = InvertibleIntegral(np.exp, 1.0)
    points = np.array([1.0, 1.3, 2.0, 17.7])
    assert integral(points) == pytest.approx(np.exp(points) - np.e, rel=1e-13, abs=1e-14)
    assert integral.invert(integral(points)) == pytest.approx(points, rel=1e-13)


def test_a_sudden_rise_is_not_missed():
    integral = InvertibleIntegral(lambda x: 1 + 1e4 / (1 + (1e4 * (x - 3.2)) ** 2))
    assert integral(10.0) == pytest.approx(10 + np.pi, rel=1e-4)
    steep = InvertibleIntegral(lambda x: 1 + 200 * (1 - np.tanh(200 * (x - 3.2)) ** 2))
    assert steep(10.0) == pytest.approx(12.0, rel=1e-11)


def test_points_beyond_the_maximum_have_an_infinite_integral():
    assert InvertibleIntegral(np.exp)(100.0) == np.inf
    assert np.isfinite(InvertibleIntegral(np.exp)(np.log(MAX_INTEGRAL) - 1))


def test_empty_arrays_give_empty_arrays():
    integral = InvertibleIntegral(np.exp)
    assert integral(np.array([])).shape == integral.invert(np.array([])).shape == (0,)
