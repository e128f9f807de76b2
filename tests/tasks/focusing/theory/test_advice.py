"""Which schedule, and why."""

import pytest

from neural.tasks.focusing.theory.advice import CANDIDATES, advised
from neural.tasks.focusing.theory.course import course
from neural.tasks.focusing.theory.setting import Setting
from neural.tasks.task import TaskError


def test_soft_then_hard_is_cheapest_where_segments_are_many():
    found = advised(3, 20)
    assert found.stages == ("soft", "hard")
    assert found.calls <= course(Setting(3, 20), "lvml").calls_to(0.95) / 2, "at most half of the marginal's calls"
    assert 0.5 < found.share < 0.7
    assert "soft → hard is the cheapest to a focus of 0.95 with C = 3, m = 20" in found.reason
    assert found.reason.count("\n") == 0


def test_where_the_focus_is_what_costs_time_decides():
    assert advised(20, 20, focus_cost=10).stages == ("lvml", "hard")


def test_a_budget_that_is_large_buys_time():
    large = advised(20, 20, 1e6)
    assert large.stages == ("lvml", "hard")
    assert large.time == pytest.approx(min(course(Setting(20, 20), *names).time_to(0.95) for names in CANDIDATES))
    middle = advised(20, 20, 5000)
    assert middle.stages == ("soft", "hard")
    assert middle.calls <= 5000
    assert middle.time > large.time


def test_a_budget_that_is_too_small_gets_as_far_as_it_can():
    found = advised(3, 20, 150)
    assert found.focus < 0.95
    assert found.calls == pytest.approx(150, rel=1e-3)
    assert "no schedule reaches a focus of 0.95" in found.reason
    assert found.focus > 1 / 20
    for names in CANDIDATES:
        assert course(Setting(3, 20), *names).calls_to(found.focus + 1e-3) > 150
    assert advised(3, 20, 1e-9).focus == pytest.approx(1 / 20, rel=1e-4)


def test_two_segments_need_no_hybrid():
    found = advised(2, 2)
    assert found.stages == ("hard",)
    assert found.share is None


def test_little_focus_needs_soft_alone():
    assert advised(100, 20, level=0.6).stages == ("soft",)


@pytest.mark.parametrize(("asked", "says"), [
    ({"classes": 1, "segments": 5}, "classes"), ({"classes": 3, "segments": 1}, "segments"),
    ({"classes": 3, "segments": 5, "budget": 0}, "budget"),
    ({"classes": 3, "segments": 5, "level": 1.5}, "between 0 and 1"),
    ({"classes": 3, "segments": 2, "level": 0.4}, "from the start"),
])  # fmt: skip
def test_what_cannot_be_advised_is_refused(asked, says):
    with pytest.raises(TaskError, match=says):
        advised(**asked)
