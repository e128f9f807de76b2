"""Gradient descent against the prediction: difference of the focus, and late slopes."""

import pytest

from neural.tasks.focus.theory.linear_model import run_gradient_descent
from neural.tasks.focus.theory.overview import _compute_late_rate, _max_focus_difference
from neural.tasks.focus.theory.setting import LinearSetting
from neural.tasks.focus.theory.trajectory import create_flow

SETTING, LAST_TIME = LinearSetting(3, 4), 1e4


@pytest.fixture(scope="module", params=["soft", "hard"])
def name_and_descent(request):
    descent = run_gradient_descent(SETTING, (request.param,), LAST_TIME, step=0.02, stride=0.002)
    return request.param, descent


def test_descent_with_small_steps_follows_the_prediction(name_and_descent):
    name, descent = name_and_descent
    assert _max_focus_difference(create_flow(SETTING, name), descent) < 1e-3


def test_late_slopes_of_descent_trajectory_and_formula_agree(
    name_and_descent,
):
    name, descent = name_and_descent
    late_rate = _compute_late_rate(SETTING, name, LAST_TIME, descent)
    assert late_rate.slope_measured == pytest.approx(late_rate.slope_exact, abs=3e-3)
    assert late_rate.slope == pytest.approx(late_rate.slope_exact, abs=0.03)
    assert (late_rate.slope < -0.9) == (name == "hard"), "soft is in another class"
