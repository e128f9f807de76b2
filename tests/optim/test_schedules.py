"""Schedules, against values computed by hand."""

import pytest

from neural.language.shapes import ShapeError
from neural.optim.schedules.cosine_decay import CosineDecay
from neural.optim.schedules.exponential_decay import ExponentialDecay
from neural.optim.schedules.piecewise_constant_decay import PiecewiseConstantDecay
from neural.optim.schedules.warmup import Warmup


@pytest.mark.parametrize(
    ("step", "rate"),
    [(0, 0.1), (1, 0.0870550563), (5, 0.05), (7.5, 0.0353553391), (10, 0.025), (50, 0.0000976563)],
)
def test_exponential_decay_falls_continuously(step, rate):
    assert ExponentialDecay(0.1, 5, 0.5).learning_rate_at(step) == pytest.approx(rate, rel=1e-6)


def test_exponential_decay_of_the_guide():
    schedule = ExponentialDecay(0.0001, 10000, 0.96)
    assert schedule.learning_rate_at(5000) == pytest.approx(0.0001 * 0.9797958971, rel=1e-9)
    assert schedule.learning_rate_at(10000) == pytest.approx(0.000096)


@pytest.mark.parametrize(
    ("step", "rate"), [(0, 0.2), (2, 0.15), (3, 0.1), (4, 0.05), (6, 0.0), (100, 0.0)]
)
def test_cosine_decay_falls_along_half_a_cosine(step, rate):
    assert CosineDecay(0.2, 6).learning_rate_at(step) == pytest.approx(rate, abs=1e-12)


@pytest.mark.parametrize(
    ("step", "rate"), [(0, 0.0), (1, 0.05), (4, 0.2), (7, 0.11), (10, 0.02), (99, 0.02)]
)
def test_cosine_decay_with_warm_up_and_alpha(step, rate):
    assert CosineDecay(0.2, 6, alpha=0.1, warmup_steps=4).learning_rate_at(step) == pytest.approx(
        rate, abs=1e-12
    )


@pytest.mark.parametrize(
    ("step", "rate"), [(0, 1.0), (3, 1.0), (3.5, 0.5), (4, 0.5), (11, 0.5), (12, 0.1), (1e9, 0.1)]
)
def test_piecewise_constant_decay_includes_its_boundaries(step, rate):
    assert PiecewiseConstantDecay((3, 11), (1.0, 0.5, 0.1)).learning_rate_at(step) == rate


@pytest.mark.parametrize(
    ("boundaries", "values"),
    [((3, 11), (1.0, 0.5)), ((11, 3), (1.0, 0.5, 0.1)), ((3, 3), (1.0, 0.5, 0.1))],
)
def test_boundaries_that_do_not_match_the_values_are_an_error(boundaries, values):
    with pytest.raises(ShapeError):
        PiecewiseConstantDecay(boundaries, values)


@pytest.mark.parametrize(("step", "rate"), [(0, 0.0), (1, 0.075), (3, 0.225), (4, 0.3), (400, 0.3)])
def test_warmup_rises_linearly_to_a_constant(step, rate):
    assert Warmup(4, 0.3).learning_rate_at(step) == pytest.approx(rate)


def test_warmup_is_followed_by_a_schedule_from_its_first_step():
    then = ExponentialDecay(0.1, 5, 0.5)
    schedule = Warmup(4, then)
    assert schedule.learning_rate_at(2) == pytest.approx(0.05)
    assert [schedule.learning_rate_at(4 + step) for step in (0, 5, 7)] == [
        then.learning_rate_at(step) for step in (0, 5, 7)
    ]
