"""Laws: closed forms against numerical integration, derivatives against finite differences."""

import math

import numpy as np
import pytest
from scipy.integrate import quad, solve_ivp

from neural.core.errors import TaskError
from neural.tasks.focus.theory.laws import create_law
from neural.tasks.focus.theory.setting import LinearSetting

NAMES = ("soft", "hard", "lvml", "renyi:0.5", "renyi:2", "renyi:7")
every_law = pytest.mark.parametrize("name", NAMES)
CLASSES = 5


@every_law
@pytest.mark.parametrize("focus", [0.07, 0.4, 0.93])
def test_the_margin_at_fixed_focus_equals_numerical_integration(name, focus):
    law = create_law(name, CLASSES)
    times = np.array([0.3, 11.0, 170.0, 2900.0])
    solution = solve_ivp(
        lambda _, margin: law.margin_rate(focus, margin),
        (0, times[-1]),
        [0.0],
        method="DOP853",
        t_eval=times,
        rtol=1e-13,
        atol=1e-14,
    )
    assert law.margin_at_fixed_focus(focus, times) == pytest.approx(solution.y[0], abs=1e-8)
    assert law.time_at_fixed_focus(focus, solution.y[0]) == pytest.approx(times, rel=1e-8)
    assert law.margin_at_fixed_focus(focus, 0.0) == pytest.approx(0, abs=1e-12)


@every_law
def test_the_margin_integral_equals_numerical_integration(name):
    law = create_law(name, CLASSES)

    def slope(margin):  # dν/dμ over (1 − α): the focus must fall out of it
        values = [
            f * law.incentive(f, margin) / (CLASSES * law.margin_rate(f, margin))
            for f in (0.1, 0.8)
        ]
        assert values[0] == pytest.approx(values[1], rel=1e-9)
        return float(values[0])

    for margin in (0.4, 3.0, 9.0):
        assert law.margin_integral(margin) == pytest.approx(
            quad(slope, 0, margin, epsabs=1e-12, epsrel=1e-12)[0], rel=1e-9
        )
    assert law.margin_integral(0.0) == pytest.approx(0, abs=1e-12)


@every_law
def test_the_incentive_is_the_negative_derivative_of_the_loss(name):
    law = create_law(name, CLASSES)
    for focus, margin in ((0.05, 0.3), (0.3, 2.0), (0.9, 6.0)):
        slope = (law.loss(focus + 1e-6, margin) - law.loss(focus - 1e-6, margin)) / 2e-6
        assert law.incentive(focus, margin) == pytest.approx(-slope, rel=1e-7)
        assert law.loss(focus, 0.0) == pytest.approx(math.log(CLASSES), rel=1e-12)
        assert 1 / CLASSES < law.label_probability(focus, margin) < 1


@every_law
def test_training_at_fixed_focus_tends_to_the_best_loss(name):
    law = create_law(name, CLASSES)
    focus = np.array([0.2, 0.6, 0.95])
    final_loss = np.array([law.loss(f, law.margin_at_fixed_focus(f, 1e9)) for f in focus])
    assert final_loss == pytest.approx(law.best_loss(focus), abs=1e-6)
    assert (final_loss >= law.best_loss(focus)).all()


def test_the_marginal_loss_is_never_above_the_hard_one():
    focus, margin = np.meshgrid(np.linspace(0.01, 0.99, 23), np.linspace(0, 12, 29))
    assert (
        create_law("lvml", CLASSES).loss(focus, margin)
        <= create_law("hard", CLASSES).loss(focus, margin) + 1e-12
    ).all()


def test_the_renyi_family_tends_to_hard_and_lvml():
    margin = np.array([0.2, 2.0, 8.0])
    for near_name, limit_name, tolerance in (
        ("renyi:1e-6", "hard", 1e-5),
        ("renyi:1.000001", "lvml", 1e-5),
    ):
        law, limit_law = create_law(near_name, CLASSES), create_law(limit_name, CLASSES)
        for value in ("loss", "incentive", "margin_rate"):
            assert getattr(law, value)(0.3, margin) == pytest.approx(
                getattr(limit_law, value)(0.3, margin), rel=tolerance
            )
        assert law.margin_integral(margin) == pytest.approx(
            limit_law.margin_integral(margin), rel=1e-4
        )
        assert law.time_at_fixed_focus(0.3, margin) == pytest.approx(
            limit_law.time_at_fixed_focus(0.3, margin), rel=1e-4
        )


def test_initial_incentives_are_equal_and_trained_ones_fall_with_the_focus_for_soft_only():
    soft, hard = create_law("soft", CLASSES), create_law("hard", CLASSES)
    initial = [create_law(name, CLASSES).incentive(0.2, 1e-5) for name in NAMES]
    assert initial == pytest.approx([initial[0]] * len(initial), rel=1e-4)
    alphas = np.linspace(0.2, 0.9, 8)
    incentives = [
        [float(law.incentive(a, law.margin_at_fixed_focus(a, 1000.0))) for a in alphas]
        for law in (soft, hard)
    ]
    assert (np.diff(incentives[0]) < 0).all()
    assert (np.diff(incentives[1]) > 0).all()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("sfot", "did you mean `soft`"),
        ("renyi:x", "as a number"),
        ("renyi:0", "must be positive"),
        ("renyi:-1", "must be positive"),
    ],
)
def test_unknown_laws_are_refused(name, message):
    with pytest.raises(TaskError, match=message):
        create_law(name, 3)


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ((1, 10), "C is the number of classes"),
        ((3, 1), "m is the number of segments"),
        ((3, 10, 0.0), "rate"),
        ((3, 10, math.inf), "rate"),
    ],
)
def test_an_invalid_linear_setting_is_refused(sizes, message):
    with pytest.raises(TaskError, match=message):
        LinearSetting(*sizes)


@pytest.mark.parametrize("segments", [2, 7, 100_000])
def test_scores_and_focus_are_inverse_to_each_other(segments):
    setting = LinearSetting(3, segments)
    scores = np.array([0.0, 1e-6, 0.5, 9.0, 30.0])
    assert setting.invert_score_integral(setting.score_integral(scores)) == pytest.approx(
        scores, abs=1e-9
    )
    assert setting.focus_from_score(0.0) == pytest.approx(1 / segments)
    assert setting.score_from_focus(setting.focus_from_score(scores[:4])) == pytest.approx(
        scores[:4], abs=1e-9
    )
