"""Rényi orders that change in time: the steepest order, and exponential decay."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from neural.core.errors import TaskError
from neural.tasks.focus.theory.annealed import (
    AnnealedFlow,
    SteepestFlow,
    compute_steepest_order,
    compute_steepest_tempered_gain,
    create_order_decay,
)
from neural.tasks.focus.theory.laws import create_law
from neural.tasks.focus.theory.setting import LinearSetting
from neural.tasks.focus.theory.trajectory import create_flow


@pytest.mark.parametrize("focus", [0.001, 0.05, 0.3, 0.45])
def test_no_order_has_a_larger_incentive_than_the_steepest(focus):
    margin, classes = 1.7, 5
    gain = float(create_law("hard", classes).log_gain(margin))

    def negative_incentive(log_order):
        return -create_law(f"renyi:{math.exp(log_order)!r}", classes).incentive(focus, margin)

    best = minimize_scalar(
        negative_incentive, bounds=(-6, 5), method="bounded", options={"xatol": 1e-9}
    )
    assert compute_steepest_order(focus, gain) == pytest.approx(math.exp(best.x), rel=1e-4)


def test_hard_has_the_largest_incentive_from_a_focus_of_one_half():
    assert compute_steepest_order(np.array([0.5, 0.7, 0.99]), 0.4).tolist() == [0, 0, 0]
    assert compute_steepest_tempered_gain(0.499) == pytest.approx(6 * 0.001, rel=0.02)
    incentives = [
        float(create_law(name, 3).incentive(0.6, 2.0))
        for name in ("hard", "renyi:0.3", "lvml", "renyi:4")
    ]
    assert incentives == sorted(incentives, reverse=True)


def test_the_steepest_order_is_faster_than_all_schedules():
    for sizes in ((3, 10), (20, 20), (3, 1000)):
        setting = LinearSetting(*sizes)
        flow = SteepestFlow(setting)
        for names in (
            ("soft",),
            ("hard",),
            ("lvml",),
            ("renyi:4",),
            ("soft", "hard"),
            ("lvml", "hard"),
        ):
            assert all(
                np.less(
                    flow.times_to((0.5, 0.9)), create_flow(setting, *names).times_to((0.5, 0.9))
                )
            )
    assert [round(time) for time in SteepestFlow(LinearSetting(3, 1000)).times_to((0.5, 0.95))] == [
        134,
        203,
    ]


def test_the_steepest_flow_is_continuous_and_faster_with_a_larger_max_order():
    setting = LinearSetting(3, 20)
    flow = SteepestFlow(setting)
    (switch,) = flow.switches
    path = flow.trajectory(np.array([0.0, 0.5 * switch, switch - 1e-6, switch + 1e-6, 9 * switch]))
    assert path.focus[2:4] == pytest.approx([0.5, 0.5], abs=1e-5)
    assert path.incentive[2] == pytest.approx(path.incentive[3], rel=1e-3)
    assert path.loss[2] == pytest.approx(path.loss[3], rel=1e-3)
    times = [SteepestFlow(setting, max_order=max_order).time_to(0.95) for max_order in (1, 4)]
    assert times == sorted(times, reverse=True)
    assert flow.time_to(0.95) < times[-1]
    assert times[0] == pytest.approx(create_flow(setting, "lvml", "hard").time_to(0.95), rel=0.01)


def test_a_constant_order_equals_its_law():
    setting = LinearSetting(3, 7)
    flow = AnnealedFlow(setting, create_order_decay(2.0, 2.0, 10.0), until=1e4)
    assert flow.times_to((0.5, 0.9)) == pytest.approx(
        create_flow(setting, "renyi:2").times_to((0.5, 0.9)), rel=1e-8
    )
    times = np.array([1.0, 30.0, 500.0])
    for name in ("focus", "loss", "incentive", "label_probability"):
        predicted = getattr(create_flow(setting, "renyi:2").trajectory(times), name)
        assert getattr(flow.trajectory(times), name) == pytest.approx(predicted, rel=1e-7)


def test_a_decaying_order_starts_fast_and_finishes_fast():
    setting = LinearSetting(3, 100)
    decayed = AnnealedFlow(setting, create_order_decay(8.0, 0.1, 800.0), until=1e5)
    assert decayed.time_to(0.5) < min(
        create_flow(setting, name).time_to(0.5) for name in ("soft", "hard", "lvml")
    )
    assert decayed.time_to(0.99) < min(
        create_flow(setting, name).time_to(0.99) for name in ("hard", "lvml", "renyi:4")
    )
    assert decayed.time_to(1 - 1e-9) == math.inf, "after the end"


def test_an_order_that_grows_is_refused():
    with pytest.raises(TaskError, match="decays from a larger to a smaller"):
        create_order_decay(1.0, 2.0, 10.0)
