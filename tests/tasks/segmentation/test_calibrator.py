"""Minimization of convex functions within bounds."""

import numpy as np
import pytest
from scipy.optimize import minimize

from neural.tasks.segmentation.calibrator import minimize_convex

UNBOUNDED = np.full(2, -np.inf), np.full(2, np.inf)
HESSIAN = np.array([[2.0, 0.9], [0.9, 0.5]])


def make_quadratic(centre, hessian):
    def evaluate(x):
        offset = x - centre
        return float(offset @ hessian @ offset / 2), hessian @ offset, hessian

    return evaluate


def test_the_minimum_of_a_quadratic_is_found():
    quadratic = make_quadratic(np.array([3.0, -7.0]), HESSIAN)
    minimum = minimize_convex(quadratic, np.zeros(2), *UNBOUNDED)
    np.testing.assert_allclose(minimum, [3, -7], rtol=1e-6)


@pytest.mark.parametrize(
    "centre", [(-1.0, 2.0), (2.0, -3.0), (-1.0, -1.0), (5.0, 1.0), (-0.1, 4.0)]
)
def test_the_minimum_within_bounds_is_that_of_scipy(centre):
    lower, upper = np.array([0.0, 0.0]), np.array([4.0, np.inf])
    quadratic = make_quadratic(np.array(centre), HESSIAN)
    minimum = minimize_convex(quadratic, np.array([1.0, 1.0]), lower, upper)
    expected = minimize(
        lambda x: quadratic(x)[:2], [1, 1], jac=True, bounds=[(0, 4), (0, None)], tol=1e-14
    ).x
    np.testing.assert_allclose(minimum, expected, atol=1e-5)


def test_parameters_in_a_flat_direction_do_not_change():
    quadratic = make_quadratic(np.array([3.0, 0.0]), np.diag([1.0, 0.0]))
    minimum = minimize_convex(quadratic, np.array([0.0, 5.0]), *UNBOUNDED)
    np.testing.assert_allclose(minimum, [3, 5], atol=1e-6)


def test_steps_that_go_too_far_are_shortened():
    def evaluate(x):  # Newton's step from 3 goes to −98 and beyond
        root = np.sqrt(1 + x @ x)
        return float(root), x / root, np.eye(1) / (1 + x @ x) ** 1.5

    minimum = minimize_convex(evaluate, np.array([3.0]), UNBOUNDED[0][:1], UNBOUNDED[1][:1])
    np.testing.assert_allclose(minimum, [0], atol=1e-5)
