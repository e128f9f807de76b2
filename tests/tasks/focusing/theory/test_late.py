"""How the focus finishes, at t = 3·10⁶: within 2 % of the formulas."""

import numpy as np
import pytest

from neural.tasks.focusing.theory import late
from neural.tasks.focusing.theory.course import course
from neural.tasks.focusing.theory.laws import law
from neural.tasks.focusing.theory.setting import Setting

LATE = 3e6
SIZES = [(3, 10, 1.0), (20, 20, 1.0), (3, 1000, 1.0), (5, 4, 4.0), (2, 2, 0.5)]


def missing(setting, name, time=LATE):
    return 1 - float(course(setting, name).trajectory(np.array([time])).focus[0])


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("name", ["hard", "lvml", "renyi:0.5", "renyi:3"])
def test_the_family_ends_with_one_over_time(sizes, name):
    setting, one = Setting(*sizes), law(name, sizes[0])
    assert late.leading(setting, one, LATE) == pytest.approx(missing(setting, name), rel=0.02)
    assert late.refined(setting, one, LATE) == pytest.approx(missing(setting, name), rel=0.001)


@pytest.mark.parametrize("sizes", SIZES)
def test_soft_ends_with_one_over_the_square_of_the_logarithm(sizes):
    setting, one = Setting(*sizes), law("soft", sizes[0])
    exact = missing(setting, "soft")
    assert late.refined(setting, one, LATE) == pytest.approx(exact, rel=0.02)
    assert late.leading(setting, one, LATE) == pytest.approx(exact, rel=0.12), "first order alone is not close yet"


def test_the_constants_are_those_of_the_formulas():
    setting = Setting(7, 9)
    assert late.constant(setting, law("hard", 7)) == pytest.approx(7 / np.log(7))
    assert late.constant(setting, law("lvml", 7)) == pytest.approx(49 / 6)
    assert late.constant(setting, law("soft", 7)) == pytest.approx(14 / 6)
    ratio = missing(setting, "lvml") / missing(setting, "hard")
    assert ratio == pytest.approx(7 * np.log(7) / 6, rel=0.01), "hard beats the marginal late"


def test_a_faster_focus_divides_the_constant_and_does_not_change_the_class_of_the_rate():
    slow, fast = Setting(3, 10, 1.0), Setting(3, 10, 16.0)
    for time in (1e5, 1e9):
        one = law("soft", 3)
        assert late.leading(slow, one, time) / late.leading(fast, one, time) == pytest.approx(16)
        assert late.refined(fast, one, time) == pytest.approx(missing(fast, "soft", time), rel=0.02)
    assert missing(fast, "soft") > 100 * missing(slow, "hard")


def test_late_losses_are_a_over_time_for_soft_and_c_over_r_more_for_the_family():
    for rate in (1.0, 3.0):
        setting = Setting(3, 10, rate)
        for name, constant in (("soft", 2), ("hard", 2 + 3 / rate), ("lvml", 2 + 3 / rate), ("renyi:2", 2 + 3 / rate)):
            loss = course(setting, name).trajectory(np.array([LATE])).loss[0]
            assert loss * LATE == pytest.approx(constant, rel=0.01)
