"""Recommended schedules and their reasons."""

import pytest

from neural.core.errors import TaskError
from neural.tasks.focus.theory.advice import CANDIDATE_SCHEDULES, recommend_schedule
from neural.tasks.focus.theory.setting import LinearSetting
from neural.tasks.focus.theory.trajectory import create_flow


def test_soft_then_hard_is_cheapest_with_many_segments():
    advice = recommend_schedule(3, 20)
    assert advice.stages == ("soft", "hard")
    assert (
        advice.classifier_calls
        <= create_flow(LinearSetting(3, 20), "lvml").classifier_calls_to(0.95) / 2
    ), "at most half of the marginal's calls"
    assert 0.5 < advice.switch_fraction < 0.7
    assert "soft → hard is the cheapest to a focus of 0.95 with C = 3, m = 20" in advice.reason
    assert advice.reason.count("\n") == 0


def test_with_an_expensive_focus_the_fastest_schedule_is_best():
    assert recommend_schedule(20, 20, focus_cost=10).stages == ("lvml", "hard")


def test_a_larger_budget_gives_a_faster_schedule():
    large = recommend_schedule(20, 20, 1e6)
    assert large.stages == ("lvml", "hard")
    assert large.time == pytest.approx(
        min(
            create_flow(LinearSetting(20, 20), *names).time_to(0.95)
            for names in CANDIDATE_SCHEDULES
        )
    )
    middle = recommend_schedule(20, 20, 5000)
    assert middle.stages == ("soft", "hard")
    assert middle.classifier_calls <= 5000
    assert middle.time > large.time


def test_a_budget_that_is_too_small_reaches_the_largest_possible_focus():
    advice = recommend_schedule(3, 20, 150)
    assert advice.focus < 0.95
    assert advice.classifier_calls == pytest.approx(150, rel=1e-3)
    assert "no schedule reaches a focus of 0.95" in advice.reason
    assert advice.focus > 1 / 20
    for names in CANDIDATE_SCHEDULES:
        assert (
            create_flow(LinearSetting(3, 20), *names).classifier_calls_to(advice.focus + 1e-3) > 150
        )
    assert recommend_schedule(3, 20, 1e-9).focus == pytest.approx(1 / 20, rel=1e-4)


def test_two_segments_need_no_hybrid():
    advice = recommend_schedule(2, 2)
    assert advice.stages == ("hard",)
    assert advice.switch_fraction is None


def test_soft_alone_is_enough_for_a_low_focus():
    assert recommend_schedule(100, 20, level=0.6).stages == ("soft",)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"classes": 1, "segments": 5}, "classes"),
        ({"classes": 3, "segments": 1}, "segments"),
        ({"classes": 3, "segments": 5, "budget": 0}, "budget"),
        ({"classes": 3, "segments": 5, "level": 1.5}, "between 0 and 1"),
        ({"classes": 3, "segments": 2, "level": 0.4}, "from the start"),
    ],
)
def test_invalid_arguments_of_advice_are_refused(arguments, message):
    with pytest.raises(TaskError, match=message):
        recommend_schedule(**arguments)
