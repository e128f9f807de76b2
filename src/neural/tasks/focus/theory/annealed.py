"""Rényi orders that change during training: the steepest order, or a function of time.

The Rényi losses are a family with an order τ: 0 is hard attention, 1 is the marginal likelihood.
Training is described in continuous time (gradient flow) for the linear model of setting.py, with C
classes and m segments, of which one, the foreground, decides the class:

    μ, `margin`    margin of the classifier: logit of the label on the foreground minus another one
    ν, `score`     score of the foreground; that of the other segments is 0
    α, `focus`     softmax weight of the foreground, a function of ν
    β              probability of the label on the foreground, a function of μ
    L, `gain`      log(Cβ), the gain in log-likelihood over a uniform guess
    y, `tempered`  τL, the tempered gain

A law (laws.py) is the equations of one loss: the loss, the rate of change of μ, and the incentive
−∂loss/∂α, which drives ν. The incentive of a Rényi loss is L · (e^y − 1)/(y (α e^y + 1 − α)). The
y that maximises it depends on the focus alone:

    α = (y e^y − e^y + 1)/(e^y − 1)²        y → 0 as α → 1/2, y ≈ log m + log log m at α = 1/m

So the steepest order, the one with the largest incentive, is τ = y(α)/L. It is infinite at the
start, falls, and is 0 (hard attention) from α = 1/2 on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
from scipy.integrate import solve_ivp
from scipy.interpolate import CubicSpline

from neural.core.errors import TaskError
from neural.tasks.focus.theory.laws import HardLaw, Law
from neural.tasks.focus.theory.numerics import find_root
from neural.tasks.focus.theory.setting import LinearSetting, Numbers, check_focus_level
from neural.tasks.focus.theory.trajectory import (
    ClosedFormFlow,
    Trajectory,
    concatenate_trajectories,
)

MAX_FLOW_TIME = 1e9
"""End of the numerical integration; times after it are reported as infinite."""


def compute_steepest_tempered_gain(focus: Numbers) -> np.ndarray:
    """y(α), the tempered gain τL at the steepest order τ; 0 from α = 1/2 on."""
    focus = np.asarray(focus, float)
    return np.where(focus >= 0.5, 0.0, _inverse_spline()(np.log(np.minimum(focus, 0.5))))


def compute_steepest_order(focus: Numbers, gain: Numbers) -> np.ndarray:
    """The steepest order τ = y(α)/L; infinite for a gain L of 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        order = compute_steepest_tempered_gain(focus) / np.asarray(gain, float)
    return np.where(np.asarray(focus) >= 0.5, 0.0, order)


@cache
def _inverse_spline() -> CubicSpline:
    """Spline of y(α) over log α, for α up to 1/2 and y up to 60; α(y) is the known function."""
    y = np.concatenate([np.linspace(0, 1, 400)[1:], np.linspace(1, 60, 3000)[1:]])
    focus = (y * np.exp(y) - np.expm1(y)) / np.expm1(y) ** 2
    log_focus = np.log([0.5, *focus])
    return CubicSpline(log_focus[::-1], [0.0, *y][::-1])


class AnnealedFlow:
    """Gradient flow with the Rényi order `order(time)`, integrated numerically up to `until`."""

    name = "annealed"
    switches: tuple[float, ...] = ()
    """Times at which the law changes; none, because the order changes continuously."""

    def __init__(
        self,
        setting: LinearSetting,
        order: Callable[[float], float],
        *,
        until: float = MAX_FLOW_TIME,
    ) -> None:
        self.setting, self._order = setting, order
        self._hard = HardLaw(setting.classes)
        self._flow = NumericalFlow(setting, self._create_rate_function(), until)

    def time_to(self, focus: float) -> float:
        """Time at which the focus reaches a level."""
        return self._flow.time_to(focus)

    def times_to(self, levels: Sequence[float]) -> list[float]:
        """Times at which the focus reaches each level."""
        return [self.time_to(level) for level in levels]

    def trajectory(self, time: Sequence[float] | np.ndarray) -> Trajectory:
        """All quantities of `Trajectory` at these times."""
        time = np.asarray(time, float)
        margin, score = self._flow.state(time)
        focus = np.asarray(self.setting.focus_from_score(score))
        tempered = self._tempered_gain(time, focus, margin)
        _, incentive, loss = compute_renyi_motion(self._hard, focus, margin, tempered)
        return Trajectory(
            time=time,
            margin=margin,
            score=score,
            focus=focus,
            loss=loss,
            incentive=incentive,
            label_probability=np.asarray(self._hard.label_probability(focus, margin)),
        )

    def _tempered_gain(self, time: Numbers, focus: Numbers, margin: Numbers) -> np.ndarray:
        """y = τL; the focus is for subclasses whose order depends on it."""
        orders = np.vectorize(self._order, otypes=[float])(time)
        return orders * np.asarray(self._hard.log_gain(margin))

    def _create_rate_function(self) -> RateFunction:
        def compute_rates(time: float, focus: float, margin: float) -> tuple[float, float]:
            margin_rate, incentive, _ = compute_renyi_motion(
                self._hard, focus, margin, self._tempered_gain(time, focus, margin)
            )
            return float(margin_rate), float(incentive)

        return compute_rates


class SteepestFlow(AnnealedFlow):
    """Flow with the steepest order, or `max_order` if that is smaller.

    It is integrated numerically up to a focus of 1/2. From then on the order is 0, and the flow is
    the closed form of hard attention. `switches` holds the time of this change.
    """

    name = "steepest"

    def __init__(self, setting: LinearSetting, *, max_order: float = math.inf) -> None:
        self.setting, self._hard, self._max_order = setting, HardLaw(setting.classes), max_order
        margin, score, switch_time = 0.0, 0.0, 0.0
        if setting.segments > 2:  # with two segments the focus starts at 1/2
            self._flow = NumericalFlow(
                setting, self._create_rate_function(), MAX_FLOW_TIME, stop_focus=0.5
            )
            switch_time = self._flow.end
            margin, score = (float(value) for value in self._flow.state(switch_time))
        self.switches = (switch_time,)
        self._after = ClosedFormFlow(setting, self._hard, margin=margin, score=score)

    def time_to(self, focus: float) -> float:
        """Time at which the focus reaches a level."""
        return (
            self._flow.time_to(focus)
            if focus < 0.5
            else self.switches[0] + self._after.time_to(focus)
        )

    def trajectory(self, time: Sequence[float] | np.ndarray) -> Trajectory:
        """All quantities at these times, which must be sorted."""
        time = np.asarray(time, float)
        early, late = np.split(time, [np.searchsorted(time, self.switches[0])])
        trajectories = [super().trajectory(early)] if len(early) else []
        return concatenate_trajectories(
            time, [*trajectories, self._after.trajectory(late - self.switches[0])]
        )

    def _tempered_gain(self, time: Numbers, focus: Numbers, margin: Numbers) -> np.ndarray:
        gain = np.asarray(self._hard.log_gain(margin))
        max_tempered = self._max_order * gain if math.isfinite(self._max_order) else math.inf
        return np.minimum(compute_steepest_tempered_gain(focus), max_tempered)


def compute_renyi_motion(
    hard: HardLaw, focus: Numbers, margin: Numbers, tempered: Numbers
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(dμ/dt, incentive, loss) of the Rényi loss with τL = `tempered`; 0 is hard attention.

    `hard` gives the number of classes and the gain L, which are the same for all orders.
    """
    gain, y = np.asarray(hard.log_gain(margin)), np.maximum(tempered, 1e-12)
    # (likelihood of the label on another segment / on the foreground) to the power τ
    background_ratio = np.exp(-y)
    mixture = focus + (1 - focus) * background_ratio
    margin_rate = focus / mixture / (np.exp(margin) + hard.other_classes)
    incentive = gain * -np.expm1(-y) / (y * mixture)
    loss = math.log(hard.classes) - gain - gain * np.log1p((1 - focus) * np.expm1(-y)) / y
    return margin_rate, incentive, loss


def create_order_decay(first: float, last: float, duration: float) -> Callable[[float], float]:
    """Order that decays exponentially from `first` to `last` over `duration`, then is constant."""
    if not (first >= last > 0 and duration > 0):
        raise TaskError(
            "an order decays from a larger to a smaller positive value over a positive time, got "
            f"{first:g} to {last:g} over {duration:g}"
        )
    return lambda time: first * (last / first) ** min(time / duration, 1.0)


RateFunction = Callable[[float, float, float], tuple[float, float]]
"""Maps (time, focus α, margin μ) to (dμ/dt, incentive)."""


class NumericalFlow:
    """Margin μ and score ν by numerical integration, up to a time or until α is `stop_focus`."""

    def __init__(
        self,
        setting: LinearSetting,
        compute_rates: RateFunction,
        until: float,
        *,
        stop_focus: float | None = None,
        tolerance: float = 1e-11,
    ) -> None:
        self.setting = setting

        def compute_derivative(time: float, state: np.ndarray) -> list[float]:
            focus = float(setting.focus_from_score(state[1]))
            margin_rate, incentive = compute_rates(time, focus, float(state[0]))
            # The state is (margin, score). dν/dt = −∂loss/∂ν = incentive · dα/dν, where dα/dν =
            # α(1 − α); 1/C is the share of examples of a class, which alone train its score.
            return [margin_rate, setting.rate * focus * (1 - focus) * incentive / setting.classes]

        events = []
        if stop_focus is not None:
            stop_score = float(setting.score_from_focus(check_focus_level(stop_focus)))

            def measure_score_gap(_: float, state: np.ndarray) -> float:
                return float(state[1]) - stop_score

            measure_score_gap.terminal = True  # type: ignore[attr-defined]
            events = [measure_score_gap]
        solution = solve_ivp(
            compute_derivative,
            (0.0, until),
            [0.0, 0.0],
            method="DOP853",
            rtol=tolerance,
            atol=tolerance / 100,
            dense_output=True,
            events=events or None,
        )
        self.end = float(solution.t[-1])
        self._solution = solution.sol

    def state(self, time: float | np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Margin and score at these times."""
        margin, score = self._solution(np.asarray(time, float))
        return margin, score

    def time_to(self, focus: float) -> float:
        """Time at which the focus reaches a level; infinite if after the end."""
        target_score = float(self.setting.score_from_focus(check_focus_level(focus)))

        def measure_score_gap(time: float) -> float:
            return float(self.state(time)[1]) - target_score

        if measure_score_gap(0.0) >= 0:
            return 0.0
        return (
            math.inf
            if measure_score_gap(self.end) < 0
            else find_root(measure_score_gap, 0.0, self.end)
        )


def create_rate_function(law: Law) -> RateFunction:
    """The rates of a law that does not change in time."""

    def compute_rates(_: float, focus: float, margin: float) -> tuple[float, float]:
        return float(law.margin_rate(focus, margin)), float(law.incentive(focus, margin))

    return compute_rates
