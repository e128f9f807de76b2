"""Each law by itself: its closed forms against numerical integration, its derivatives against differences."""

import math

import numpy as np
import pytest
from scipy.integrate import quad, solve_ivp

from neural.tasks.focusing.theory.laws import law
from neural.tasks.focusing.theory.setting import Setting
from neural.tasks.task import TaskError

NAMES = ("soft", "hard", "lvml", "renyi:0.5", "renyi:2", "renyi:7")
every_law = pytest.mark.parametrize("name", NAMES)
CLASSES = 5


@every_law
@pytest.mark.parametrize("focus", [0.07, 0.4, 0.93])
def test_a_held_focus_moves_the_classifier_as_integration_says(name, focus):
    one = law(name, CLASSES)
    times = np.array([0.3, 11.0, 170.0, 2900.0])
    found = solve_ivp(lambda _, margin: one.pace(focus, margin), (0, times[-1]), [0.0], method="DOP853", t_eval=times,
                      rtol=1e-13, atol=1e-14)  # fmt: skip
    assert one.held_margin(focus, times) == pytest.approx(found.y[0], abs=1e-8)
    assert one.held_time(focus, found.y[0]) == pytest.approx(times, rel=1e-8)
    assert one.held_margin(focus, 0.0) == pytest.approx(0, abs=1e-12)


@every_law
def test_the_push_is_the_integral_of_what_moves_the_score_per_margin(name):
    one = law(name, CLASSES)

    def slope(margin):   # dν/dμ over (1 − α): the focus must fall out of it
        values = [f * one.incentive(f, margin) / (CLASSES * one.pace(f, margin)) for f in (0.1, 0.8)]
        assert values[0] == pytest.approx(values[1], rel=1e-9)
        return float(values[0])

    for margin in (0.4, 3.0, 9.0):
        assert one.push(margin) == pytest.approx(quad(slope, 0, margin, epsabs=1e-12, epsrel=1e-12)[0], rel=1e-9)
    assert one.push(0.0) == pytest.approx(0, abs=1e-12)


@every_law
def test_the_incentive_is_what_the_loss_gains_from_more_focus(name):
    one = law(name, CLASSES)
    for focus, margin in ((0.05, 0.3), (0.3, 2.0), (0.9, 6.0)):
        slope = (one.loss(focus + 1e-6, margin) - one.loss(focus - 1e-6, margin)) / 2e-6
        assert one.incentive(focus, margin) == pytest.approx(-slope, rel=1e-7)
        assert one.loss(focus, 0.0) == pytest.approx(math.log(CLASSES), rel=1e-12)
        assert 1 / CLASSES < one.right(focus, margin) < 1


@every_law
def test_training_under_a_held_focus_tends_to_the_best_loss(name):
    one = law(name, CLASSES)
    focus = np.array([0.2, 0.6, 0.95])
    after = np.array([one.loss(f, one.held_margin(f, 1e9)) for f in focus])
    assert after == pytest.approx(one.best_loss(focus), abs=1e-6)
    assert (after >= one.best_loss(focus)).all()


def test_the_marginal_loss_is_never_above_the_hard_one():
    focus, margin = np.meshgrid(np.linspace(0.01, 0.99, 23), np.linspace(0, 12, 29))
    assert (law("lvml", CLASSES).loss(focus, margin) <= law("hard", CLASSES).loss(focus, margin) + 1e-12).all()


def test_the_family_joins_hard_and_marginal():
    margin = np.array([0.2, 2.0, 8.0])
    for near, limit, close in (("renyi:1e-6", "hard", 1e-5), ("renyi:1.000001", "lvml", 1e-5)):
        one, other = law(near, CLASSES), law(limit, CLASSES)
        for value in ("loss", "incentive", "pace"):
            assert getattr(one, value)(0.3, margin) == pytest.approx(getattr(other, value)(0.3, margin), rel=close)
        assert one.push(margin) == pytest.approx(other.push(margin), rel=1e-4)
        assert one.held_time(0.3, margin) == pytest.approx(other.held_time(0.3, margin), rel=1e-4)


def test_at_the_start_all_incentives_are_alike_and_later_soft_falls_with_the_focus_and_hard_does_not():
    soft, hard = law("soft", CLASSES), law("hard", CLASSES)
    early = [law(name, CLASSES).incentive(0.2, 1e-5) for name in NAMES]
    assert early == pytest.approx([early[0]] * len(early), rel=1e-4)
    alphas = np.linspace(0.2, 0.9, 8)
    trained = [[float(one.incentive(a, one.held_margin(a, 1000.0))) for a in alphas] for one in (soft, hard)]
    assert (np.diff(trained[0]) < 0).all()
    assert (np.diff(trained[1]) > 0).all()


@pytest.mark.parametrize(("name", "says"), [
    ("sfot", "did you mean `soft`"), ("renyi:x", "as a number"), ("renyi:0", "more than 0"), ("renyi:-1", "than 0"),
])  # fmt: skip
def test_unknown_laws_are_refused(name, says):
    with pytest.raises(TaskError, match=says):
        law(name, 3)


@pytest.mark.parametrize(("sizes", "says"), [
    ((1, 10), "C is the number of classes"), ((3, 1), "m is the number of segments"), ((3, 10, 0.0), "rate"),
    ((3, 10, math.inf), "rate"),
])  # fmt: skip
def test_what_is_no_setting_is_refused(sizes, says):
    with pytest.raises(TaskError, match=says):
        Setting(*sizes)


@pytest.mark.parametrize("segments", [2, 7, 100_000])
def test_scores_and_focus_lead_to_each_other(segments):
    setting = Setting(3, segments)
    scores = np.array([0.0, 1e-6, 0.5, 9.0, 30.0])
    assert setting.score_after(setting.climb(scores)) == pytest.approx(scores, abs=1e-9)
    assert setting.focus(0.0) == pytest.approx(1 / segments)
    assert setting.score(setting.focus(scores[:4])) == pytest.approx(scores[:4], abs=1e-9)
