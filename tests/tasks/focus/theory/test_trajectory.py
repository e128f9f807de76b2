"""Switches of hybrids."""

import pytest

from neural.tasks.focus.theory.laws import create_law
from neural.tasks.focus.theory.setting import LinearSetting
from neural.tasks.focus.theory.trajectory import (
    ClosedFormFlow,
    create_flow,
    find_best_switch,
    find_equal_incentive,
    switch_at_equal_incentive,
    switch_at_margin,
)


@pytest.mark.parametrize("first", ["soft", "lvml"])
@pytest.mark.parametrize("sizes", [(3, 10), (20, 20), (3, 1000)])
def test_switching_at_equal_incentive_is_within_one_percent_of_the_best(first, sizes):
    setting = LinearSetting(*sizes)
    first_law, then_law = create_law(first, sizes[0]), create_law("hard", sizes[0])
    equal, best = (
        switch_at_equal_incentive(setting, first_law, then_law).time_to(0.95),
        find_best_switch(setting, first_law, then_law, 0.95).time_to(0.95),
    )
    assert best <= equal <= 1.01 * best
    assert best < min(
        create_flow(setting, first).time_to(0.95), create_flow(setting, "hard").time_to(0.95)
    )


def test_no_other_switch_is_faster_than_the_best():
    setting = LinearSetting(3, 10)
    first_law, then_law = create_law("soft", 3), create_law("hard", 3)
    best = find_best_switch(setting, first_law, then_law, 0.9)
    margin = best.flows[1].margin
    for factor in (0.8, 0.98, 1.02, 1.2):
        assert switch_at_margin(setting, first_law, then_law, factor * margin).time_to(
            0.9
        ) > best.time_to(0.9)


def test_marginal_then_hard_is_the_best_of_two_with_many_classes():
    setting = LinearSetting(20, 20)
    flow = create_flow(setting, "lvml", "hard")
    assert [round(time) for time in flow.times_to((0.5, 0.95))] == [413, 595]
    assert flow.time_to(0.95) < create_flow(setting, "soft", "hard").time_to(0.95)


def test_hard_is_fastest_with_two_segments_and_two_classes():
    setting = LinearSetting(2, 2)
    assert (
        find_equal_incentive(ClosedFormFlow(setting, create_law("soft", 2)), create_law("hard", 2))
        == 0
    )
    assert create_flow(setting, "soft", "hard").time_to(0.9) == pytest.approx(
        create_flow(setting, "hard").time_to(0.9)
    )


def test_a_hybrid_never_switches_to_a_law_with_a_smaller_incentive():
    setting = LinearSetting(3, 10)
    flow = switch_at_equal_incentive(setting, create_law("hard", 3), create_law("soft", 3))
    assert flow.switches == () or flow.switches[0] == 0
    assert (
        find_equal_incentive(
            ClosedFormFlow(setting, create_law("hard", 3), margin=4.0, score=3.0),
            create_law("soft", 3),
        )
        is None
    )
