"""Schedules by values computed by hand."""

import pytest

from neural.language.shapes import Misfit
from neural.training.schedules.cosine_decay import CosineDecay
from neural.training.schedules.exponential_decay import ExponentialDecay
from neural.training.schedules.piecewise_constant_decay import PiecewiseConstantDecay
from neural.training.schedules.warmup import Warmup


@pytest.mark.parametrize(
    ("step", "rate"), [(0, 0.1), (1, 0.0870550563), (5, 0.05), (7.5, 0.0353553391), (10, 0.025), (50, 0.0000976563)]
)
def test_exponential_decay_falls_continuously(step, rate):
    assert ExponentialDecay(0.1, 5, 0.5).at(step) == pytest.approx(rate, rel=1e-6)


def test_the_guides_exponential_decay():
    schedule = ExponentialDecay(0.0001, 10000, 0.96)
    assert schedule.at(5000) == pytest.approx(0.0001 * 0.9797958971, rel=1e-9)
    assert schedule.at(10000) == pytest.approx(0.000096)


@pytest.mark.parametrize(("step", "rate"), [(0, 0.2), (2, 0.15), (3, 0.1), (4, 0.05), (6, 0.0), (100, 0.0)])
def test_cosine_decay_falls_along_half_a_cosine(step, rate):
    assert CosineDecay(0.2, 6).at(step) == pytest.approx(rate, abs=1e-12)


@pytest.mark.parametrize(("step", "rate"), [(0, 0.0), (1, 0.05), (4, 0.2), (7, 0.11), (10, 0.02), (99, 0.02)])
def test_cosine_decay_after_a_warm_up_down_to_a_share(step, rate):
    assert CosineDecay(0.2, 6, alpha=0.1, warmup_steps=4).at(step) == pytest.approx(rate, abs=1e-12)


@pytest.mark.parametrize(("step", "rate"), [(0, 1.0), (3, 1.0), (3.5, 0.5), (4, 0.5), (11, 0.5), (12, 0.1), (1e9, 0.1)])
def test_piecewise_constant_decay_includes_its_boundaries(step, rate):
    assert PiecewiseConstantDecay((3, 11), (1.0, 0.5, 0.1)).at(step) == rate


@pytest.mark.parametrize(
    ("boundaries", "values"), [((3, 11), (1.0, 0.5)), ((11, 3), (1.0, 0.5, 0.1)), ((3, 3), (1.0, 0.5, 0.1))]
)
def test_boundaries_that_do_not_fit_are_refused(boundaries, values):
    with pytest.raises(Misfit):
        PiecewiseConstantDecay(boundaries, values)


@pytest.mark.parametrize(("step", "rate"), [(0, 0.0), (1, 0.075), (3, 0.225), (4, 0.3), (400, 0.3)])
def test_warmup_rises_along_a_line_to_a_constant(step, rate):
    assert Warmup(4, 0.3).at(step) == pytest.approx(rate)


def test_warmup_hands_over_to_a_schedule_that_starts_at_its_beginning():
    then = ExponentialDecay(0.1, 5, 0.5)
    schedule = Warmup(4, then)
    assert schedule.at(2) == pytest.approx(0.05)
    assert [schedule.at(4 + step) for step in (0, 5, 7)] == [then.at(step) for step in (0, 5, 7)]
