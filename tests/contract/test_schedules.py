"""Every schedule gives a learning rate at any step, by a formula without state."""

from math import isfinite

import pytest

from neural.optim.schedules import registry as schedules

STEPS = [0, 0.5, 1, 2, 2.999, 3, 5, 6, 7, 11, 100, 10_000, 10_000_000]
every_schedule = pytest.mark.parametrize("name", schedules.names())


@every_schedule
@pytest.mark.parametrize("step", STEPS)
def test_a_rate_is_finite_and_never_negative(name, step):
    rate = schedules.get(name).example().learning_rate_at(step)
    assert isinstance(rate, float)
    assert isfinite(rate)
    assert rate >= 0


@every_schedule
def test_a_schedule_has_no_state(name):
    schedule = schedules.get(name).example()
    forwards = [schedule.learning_rate_at(step) for step in STEPS]
    backwards = [schedule.learning_rate_at(step) for step in reversed(STEPS)]
    assert forwards == backwards[::-1]


@every_schedule
def test_a_schedule_changes_the_rate(name):
    schedule = schedules.get(name).example()
    assert len({schedule.learning_rate_at(step) for step in STEPS}) > 1
