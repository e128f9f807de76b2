"""The lowest point within bounds."""

import numpy as np
import pytest
from scipy.optimize import minimize

from neural.tasks.cutting.newton import lowest

FREE = np.full(2, -np.inf), np.full(2, np.inf)


def bowl(centre, curvature):
    def surface(at):
        away = at - centre
        return float(away @ curvature @ away / 2), curvature @ away, curvature

    return surface


CURVED = np.array([[2.0, 0.9], [0.9, 0.5]])


def test_a_bowl_is_left_at_its_lowest_point():
    np.testing.assert_allclose(lowest(bowl(np.array([3.0, -7.0]), CURVED), np.zeros(2), *FREE), [3, -7], rtol=1e-6)


@pytest.mark.parametrize("centre", [(-1.0, 2.0), (2.0, -3.0), (-1.0, -1.0), (5.0, 1.0), (-0.1, 4.0)])
def test_bounds_are_kept_and_the_best_within_them_is_found(centre):
    lower, upper = np.array([0.0, 0.0]), np.array([4.0, np.inf])
    surface = bowl(np.array(centre), CURVED)
    found = lowest(surface, np.array([1.0, 1.0]), lower, upper)
    peer = minimize(lambda at: surface(at)[:2], [1, 1], jac=True, bounds=[(0, 4), (0, None)], tol=1e-14).x
    np.testing.assert_allclose(found, peer, atol=1e-5)


def test_a_flat_direction_is_left_as_it_is():
    found = lowest(bowl(np.array([3.0, 0.0]), np.diag([1.0, 0.0])), np.array([0.0, 5.0]), *FREE)
    np.testing.assert_allclose(found, [3, 5], atol=1e-6)


def test_steps_that_go_too_far_are_shortened():
    def steep(at):   # Newton's step from 3 goes to −98 and beyond
        return float(np.sqrt(1 + at @ at)), at / np.sqrt(1 + at @ at), np.eye(1) / (1 + at @ at) ** 1.5

    np.testing.assert_allclose(lowest(steep, np.array([3.0]), FREE[0][:1], FREE[1][:1]), [0], atol=1e-5)
