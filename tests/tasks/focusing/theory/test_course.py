"""Where to switch."""

import pytest

from neural.tasks.focusing.theory.course import best_switch, course, hybrid, switched
from neural.tasks.focusing.theory.laws import law
from neural.tasks.focusing.theory.motion import Motion, equal_incentive
from neural.tasks.focusing.theory.setting import Setting


@pytest.mark.parametrize("first", ["soft", "lvml"])
@pytest.mark.parametrize("sizes", [(3, 10), (20, 20), (3, 1000)])
def test_switching_at_equal_incentive_is_within_one_percent_of_the_best(first, sizes):
    setting = Setting(*sizes)
    one, two = law(first, sizes[0]), law("hard", sizes[0])
    equal, best = hybrid(setting, one, two).time_to(0.95), best_switch(setting, one, two, 0.95).time_to(0.95)
    assert best <= equal <= 1.01 * best
    assert best < min(course(setting, first).time_to(0.95), course(setting, "hard").time_to(0.95))


def test_no_other_switch_is_better_than_the_best():
    setting = Setting(3, 10)
    one, two = law("soft", 3), law("hard", 3)
    best = best_switch(setting, one, two, 0.9)
    margin = best.motions[1].margin
    for factor in (0.8, 0.98, 1.02, 1.2):
        assert switched(setting, one, two, factor * margin).time_to(0.9) > best.time_to(0.9)


def test_marginal_then_hard_is_the_best_of_two_with_many_classes():
    setting = Setting(20, 20)
    found = course(setting, "lvml", "hard")
    assert [round(time) for time in found.times_to((0.5, 0.95))] == [413, 595]
    assert found.time_to(0.95) < course(setting, "soft", "hard").time_to(0.95)


def test_with_two_segments_and_classes_hard_is_ahead_from_the_start():
    setting = Setting(2, 2)
    assert equal_incentive(Motion(setting, law("soft", 2)), law("hard", 2)) == 0
    assert course(setting, "soft", "hard").time_to(0.9) == pytest.approx(course(setting, "hard").time_to(0.9))


def test_a_law_that_is_never_overtaken_goes_on_alone():
    setting = Setting(3, 10)
    found = hybrid(setting, law("hard", 3), law("soft", 3))
    assert found.switches == () or found.switches[0] == 0
    assert equal_incentive(Motion(setting, law("hard", 3), margin=4.0, score=3.0), law("soft", 3)) is None
