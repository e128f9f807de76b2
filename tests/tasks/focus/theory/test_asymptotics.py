"""Asymptotics of the focus at t = 3·10⁶: within 2 % of the formulas."""

import numpy as np
import pytest

from neural.tasks.focus.theory import asymptotics
from neural.tasks.focus.theory.laws import create_law
from neural.tasks.focus.theory.setting import LinearSetting
from neural.tasks.focus.theory.trajectory import create_flow

LATE = 3e6
SIZES = [(3, 10, 1.0), (20, 20, 1.0), (3, 1000, 1.0), (5, 4, 4.0), (2, 2, 0.5)]


def exact_gap(setting, name, time=LATE):
    return 1 - float(create_flow(setting, name).trajectory(np.array([time])).focus[0])


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("name", ["hard", "lvml", "renyi:0.5", "renyi:3"])
def test_the_gap_of_the_renyi_family_falls_as_one_over_time(sizes, name):
    setting, law = LinearSetting(*sizes), create_law(name, sizes[0])
    assert asymptotics.first_order_gap(setting, law, LATE) == pytest.approx(
        exact_gap(setting, name), rel=0.02
    )
    assert asymptotics.second_order_gap(setting, law, LATE) == pytest.approx(
        exact_gap(setting, name), rel=0.001
    )


@pytest.mark.parametrize("sizes", SIZES)
def test_the_gap_of_soft_falls_as_one_over_log_time_squared(sizes):
    setting, law = LinearSetting(*sizes), create_law("soft", sizes[0])
    exact = exact_gap(setting, "soft")
    assert asymptotics.second_order_gap(setting, law, LATE) == pytest.approx(exact, rel=0.02)
    assert asymptotics.first_order_gap(setting, law, LATE) == pytest.approx(exact, rel=0.12), (
        "first order alone is not close yet"
    )


def test_the_constants_are_those_of_the_formulas():
    setting = LinearSetting(7, 9)
    assert asymptotics.compute_constant(setting, create_law("hard", 7)) == pytest.approx(
        7 / np.log(7)
    )
    assert asymptotics.compute_constant(setting, create_law("lvml", 7)) == pytest.approx(49 / 6)
    assert asymptotics.compute_constant(setting, create_law("soft", 7)) == pytest.approx(14 / 6)
    ratio = exact_gap(setting, "lvml") / exact_gap(setting, "hard")
    assert ratio == pytest.approx(7 * np.log(7) / 6, rel=0.01), "hard beats the marginal late"


def test_a_faster_focus_divides_the_constant_and_does_not_change_the_class_of_the_rate():
    slow, fast = LinearSetting(3, 10, 1.0), LinearSetting(3, 10, 16.0)
    for time in (1e5, 1e9):
        law = create_law("soft", 3)
        assert asymptotics.first_order_gap(slow, law, time) / asymptotics.first_order_gap(
            fast, law, time
        ) == pytest.approx(16)
        assert asymptotics.second_order_gap(fast, law, time) == pytest.approx(
            exact_gap(fast, "soft", time), rel=0.02
        )
    assert exact_gap(fast, "soft") > 100 * exact_gap(slow, "hard")


def test_late_losses_times_time_tend_to_a_constant():
    for rate in (1.0, 3.0):
        setting = LinearSetting(3, 10, rate)
        for name, constant in (
            ("soft", 2),
            ("hard", 2 + 3 / rate),
            ("lvml", 2 + 3 / rate),
            ("renyi:2", 2 + 3 / rate),
        ):
            loss = create_flow(setting, name).trajectory(np.array([LATE])).loss[0]
            assert loss * LATE == pytest.approx(constant, rel=0.01)
