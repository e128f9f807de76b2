"""Orders that fall: the steepest one, and by the clock."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from neural.tasks.focusing.theory.annealed import Annealed, Steepest, falling, steepest_order, steepness
from neural.tasks.focusing.theory.course import course
from neural.tasks.focusing.theory.laws import law
from neural.tasks.focusing.theory.setting import Setting
from neural.tasks.task import TaskError


@pytest.mark.parametrize("focus", [0.001, 0.05, 0.3, 0.45])
def test_no_order_pulls_harder_than_the_steepest(focus):
    margin, classes = 1.7, 5
    gain = float(law("hard", classes).gain(margin))

    def slack(log):
        return -law(f"renyi:{math.exp(log)!r}", classes).incentive(focus, margin)

    best = minimize_scalar(slack, bounds=(-6, 5), method="bounded", options={"xatol": 1e-9})
    assert steepest_order(focus, gain) == pytest.approx(math.exp(best.x), rel=1e-4)


def test_hard_pulls_hardest_from_a_half_on():
    assert steepest_order(np.array([0.5, 0.7, 0.99]), 0.4).tolist() == [0, 0, 0]
    assert steepness(0.499) == pytest.approx(6 * 0.001, rel=0.02)
    incentives = [float(law(name, 3).incentive(0.6, 2.0)) for name in ("hard", "renyi:0.3", "lvml", "renyi:4")]
    assert incentives == sorted(incentives, reverse=True)


def test_the_steepest_order_leaves_all_others_behind():
    for sizes in ((3, 10), (20, 20), (3, 1000)):
        setting = Setting(*sizes)
        found = Steepest(setting)
        for names in (("soft",), ("hard",), ("lvml",), ("renyi:4",), ("soft", "hard"), ("lvml", "hard")):
            assert all(np.less(found.times_to((0.5, 0.9)), course(setting, *names).times_to((0.5, 0.9))))
    assert [round(time) for time in Steepest(Setting(3, 1000)).times_to((0.5, 0.95))] == [134, 203]


def test_the_steepest_path_is_whole_and_gains_by_the_highest_order():
    setting = Setting(3, 20)
    found = Steepest(setting)
    (switch,) = found.switches
    path = found.trajectory(np.array([0.0, 0.5 * switch, switch - 1e-6, switch + 1e-6, 9 * switch]))
    assert path.focus[2:4] == pytest.approx([0.5, 0.5], abs=1e-5)
    assert path.incentive[2] == pytest.approx(path.incentive[3], rel=1e-3)
    assert path.loss[2] == pytest.approx(path.loss[3], rel=1e-3)
    times = [Steepest(setting, most=most).time_to(0.95) for most in (1, 4)]
    assert times == sorted(times, reverse=True)
    assert found.time_to(0.95) < times[-1]
    assert times[0] == pytest.approx(course(setting, "lvml", "hard").time_to(0.95), rel=0.01)


def test_an_order_that_stands_still_is_that_law():
    setting = Setting(3, 7)
    found = Annealed(setting, falling(2.0, 2.0, 10.0), until=1e4)
    assert found.times_to((0.5, 0.9)) == pytest.approx(course(setting, "renyi:2").times_to((0.5, 0.9)), rel=1e-8)
    times = np.array([1.0, 30.0, 500.0])
    for name in ("focus", "loss", "incentive", "right"):
        predicted = getattr(course(setting, "renyi:2").trajectory(times), name)
        assert getattr(found.trajectory(times), name) == pytest.approx(predicted, rel=1e-7)


def test_an_order_that_falls_begins_like_the_high_and_ends_like_the_low():
    setting = Setting(3, 100)
    fallen = Annealed(setting, falling(8.0, 0.1, 800.0), until=1e5)
    assert fallen.time_to(0.5) < min(course(setting, name).time_to(0.5) for name in ("soft", "hard", "lvml"))
    assert fallen.time_to(0.99) < min(course(setting, name).time_to(0.99) for name in ("hard", "lvml", "renyi:4"))
    assert fallen.time_to(1 - 1e-9) == math.inf, "after the end"


def test_an_order_cannot_fall_upwards():
    with pytest.raises(TaskError, match="falls from above to below"):
        falling(1.0, 2.0, 10.0)
