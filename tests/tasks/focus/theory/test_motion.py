"""Closed-form flows against numerical integration, and their invariant."""

import numpy as np
import pytest

from neural.tasks.focus.theory.annealed import NumericalFlow, create_rate_function
from neural.tasks.focus.theory.laws import create_law
from neural.tasks.focus.theory.setting import LinearSetting
from neural.tasks.focus.theory.trajectory import (
    ClosedFormFlow,
    create_flow,
    switch_at_equal_incentive,
    switch_at_margin,
)

NAMES = ("soft", "hard", "lvml", "renyi:3")
LEVELS = (0.5, 0.9, 0.95)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("sizes", [(3, 7, 1.0), (5, 11, 3.0), (2, 2, 0.2)])
def test_the_closed_form_equals_numerical_integration(name, sizes):
    setting, law = LinearSetting(*sizes), create_law(name, sizes[0])
    times = np.array([0.0, 1.7, 23.0, 60.0, 310.0])
    numerical = NumericalFlow(setting, create_rate_function(law), times[-1], tolerance=1e-12)
    margin, score = numerical.state(times)
    flow = ClosedFormFlow(setting, law).trajectory(times)
    assert flow.margin == pytest.approx(margin, abs=1e-8)
    assert flow.score == pytest.approx(score, abs=1e-8)
    assert setting.score_integral(score) - setting.rate * law.margin_integral(
        margin
    ) == pytest.approx(0, abs=1e-8), "the invariant"


@pytest.mark.parametrize("name", NAMES)
def test_the_invariant_is_constant_from_any_start(name):
    setting, law = LinearSetting(4, 9, 1.5), create_law(name, 4)
    closed_form = ClosedFormFlow(setting, law, margin=0.8, score=1.3)
    path = closed_form.trajectory(np.geomspace(0.01, 1e5, 50))
    invariant = setting.score_integral(path.score) - setting.rate * law.margin_integral(path.margin)
    assert invariant == pytest.approx(closed_form.invariant, abs=1e-8, rel=1e-10)
    assert (np.diff(path.focus) > 0).all()
    assert (np.diff(path.loss) < 0).all()


@pytest.mark.parametrize("name", NAMES)
def test_time_and_focus_are_inverse_to_each_other(name):
    closed_form = ClosedFormFlow(LinearSetting(3, 10), create_law(name, 3))
    for level in (0.2, 0.5, 0.9):
        assert closed_form.trajectory(np.array([closed_form.time_to(level)])).focus[
            0
        ] == pytest.approx(level, abs=1e-10)
    assert closed_form.time_to(0.1) == 0
    assert closed_form.time_to(0.05) == 0


def test_soft_needs_infinite_time_for_a_focus_near_one():
    setting = LinearSetting(3, 10)
    assert create_flow(setting, "soft").time_to(1 - 1e-6) == np.inf
    assert np.isfinite(create_flow(setting, "hard").time_to(1 - 1e-6))


TABLE = {
    (3, 10): {
        "soft": (60.5, 353.2, 3207.4),
        "hard": (73.1, 112.9, 145.6),
        "lvml": (60.9, 113.5, 163.8),
        "soft → hard": (60.4, 99.0, 131.5),
    },
    (20, 20): {
        "soft": (575.2, 766.1, 1613.5),
        "hard": (600.5, 706.6, 788.8),
        "lvml": (418.5, 639.6, 867.5),
        "soft → hard": (575.2, 678.2, 760.1),
    },
    (3, 1000): {
        "soft": (4641.9, 5284.2, 11134.8),
        "hard": (6077.8, 6116.1, 6148.5),
        "lvml": (4436.0, 4487.7, 4537.7),
        "soft → hard": (4640.9, 4677.8, 4709.7),
    },
}
"""Times to α = 0.5, 0.9, 0.95."""


@pytest.mark.parametrize("sizes", TABLE)
@pytest.mark.parametrize("name", ["soft", "hard", "lvml", "soft → hard"])
def test_the_times_equal_those_of_the_table(sizes, name):
    flow = create_flow(LinearSetting(*sizes), *name.split(" → "))
    assert flow.name == name
    assert tuple(round(time, 1) for time in flow.times_to(LEVELS)) == TABLE[sizes][name]


@pytest.mark.parametrize(
    ("sizes", "first"),
    [((3, 10), "soft"), ((20, 20), "soft"), ((3, 1000), "soft"), ((20, 20), "lvml")],
)
def test_a_hybrid_equals_numerical_integration_with_a_switch(sizes, first):
    setting = LinearSetting(*sizes)
    law, then_law = create_law(first, sizes[0]), create_law("hard", sizes[0])
    flow = switch_at_equal_incentive(setting, law, then_law)
    (switch,) = flow.switches

    def compute_rates(time, focus, margin):
        return create_rate_function(law if time < switch else then_law)(time, focus, margin)

    first_flow = NumericalFlow(setting, create_rate_function(law), switch)
    margin, score = (float(value) for value in first_flow.state(switch))
    focus = setting.focus_from_score(score)
    assert law.incentive(focus, margin) == pytest.approx(
        float(then_law.incentive(focus, margin)), rel=1e-7
    )
    early_margin, early_score = (float(value) for value in first_flow.state(0.9 * switch))
    assert law.incentive(setting.focus_from_score(early_score), early_margin) > then_law.incentive(
        setting.focus_from_score(early_score), early_margin
    )
    then_flow = ClosedFormFlow(setting, then_law, margin=margin, score=score)
    assert switch + then_flow.time_to(0.95) == pytest.approx(flow.time_to(0.95), rel=1e-8)
    numerical = NumericalFlow(setting, compute_rates, 1.5 * flow.time_to(0.95), tolerance=1e-9)
    assert numerical.time_to(0.95) == pytest.approx(flow.time_to(0.95), rel=1e-6)


def test_the_focus_of_a_hybrid_is_continuous_at_the_switch():
    setting = LinearSetting(3, 10)
    flow = switch_at_margin(setting, create_law("soft", 3), create_law("hard", 3), 2.5)
    (switch,) = flow.switches
    path = flow.trajectory(np.array([0.5 * switch, switch - 1e-7, switch + 1e-7, 2 * switch]))
    assert path.focus[1] == pytest.approx(path.focus[2], abs=1e-6)
    assert path.loss[2] > path.loss[1] + 0.1, "another loss from here on"
    assert flow.classifier_calls_to(0.95) == pytest.approx(
        switch + 10 * (flow.time_to(0.95) - switch)
    )
