"""Rényi orders that change during training: the steepest order, or a function of time.

The paradigms renyi:τ are a family of losses with an order τ: 0 is hard attention, 1 is LVML, the
marginal likelihood (laws.py). C is the number of classes, m the number of segments, α the focus
(attention on the relevant segment), β the label probability there, L = log(Cβ) the gain over a
uniform guess. The incentive is −∂loss/∂α. With y = τL it is
L · (e^y − 1)/(y (α e^y + 1 − α)). The y that maximises it depends on the focus alone:

    α = (y e^y − e^y + 1)/(e^y − 1)²        y → 0 as α → 1/2, y ≈ log m + log log m at α = 1/m

So the order with the largest incentive is τ = y(α)/log(Cβ): infinite at the start, falling, and 0
(hard attention) from α = 1/2 on.
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
"""End of the numerical integration."""


def compute_steepness(focus: Numbers) -> np.ndarray:
    """y(α): the steepest order (the one with the largest incentive) times L. 0 from α = 1/2 on."""
    focus = np.asarray(focus, float)
    return np.where(focus >= 0.5, 0.0, _inverse_spline()(np.log(np.minimum(focus, 0.5))))


def compute_steepest_order(focus: Numbers, gain: Numbers) -> np.ndarray:
    """τ = y(α)/L; `gain` is L. Infinite for a gain of 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        order = compute_steepness(focus) / np.asarray(gain, float)
    return np.where(np.asarray(focus) >= 0.5, 0.0, order)


@cache
def _inverse_spline() -> CubicSpline:
    """Spline of y over log α, for α up to 1/2 and y up to 60."""
    y = np.concatenate([np.linspace(0, 1, 400)[1:], np.linspace(1, 60, 3000)[1:]])
    focus = (y * np.exp(y) - np.expm1(y)) / np.expm1(y) ** 2
    log_focus = np.log([0.5, *focus])
    return CubicSpline(log_focus[::-1], [0.0, *y][::-1])


class AnnealedFlow:
    """Training in continuous time (gradient flow) with the Rényi order `order(time)`."""

    name = "annealed"

    def __init__(
        self,
        setting: LinearSetting,
        order: Callable[[float], float],
        *,
        until: float = MAX_FLOW_TIME,
    ) -> None:
        self.setting, self._order = setting, order
        self._hard = HardLaw(setting.classes)
        self._flow = NumericalFlow(setting, self._create_pull(), until)
        self.switches: tuple[float, ...] = ()

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
        """y = τL, the tempered gain."""
        orders = np.vectorize(self._order, otypes=[float])(time)
        return orders * np.asarray(self._hard.log_gain(margin))

    def _create_pull(self) -> PullFunction:
        def pull(time: float, focus: float, margin: float) -> tuple[float, float]:
            margin_rate, incentive, _ = compute_renyi_motion(
                self._hard, focus, margin, self._tempered_gain(time, focus, margin)
            )
            return float(margin_rate), float(incentive)

        return pull


class SteepestFlow(AnnealedFlow):
    """Flow with the steepest order, at most `max_order`; closed-form hard flow from α = 1/2."""

    name = "steepest"

    def __init__(self, setting: LinearSetting, *, max_order: float = math.inf) -> None:
        self.setting, self._hard, self._max_order = setting, HardLaw(setting.classes), max_order
        self.margin, score, switch_time = 0.0, 0.0, 0.0
        if setting.segments > 2:
            self._flow = NumericalFlow(setting, self._create_pull(), MAX_FLOW_TIME, stop_focus=0.5)
            switch_time = self._flow.end
            margin, score = self._flow.state(switch_time)
            self.margin, score = float(margin), float(score)
        self.switches = (switch_time,)
        self._after = ClosedFormFlow(setting, self._hard, margin=self.margin, score=score)

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
        return np.minimum(compute_steepness(focus), max_tempered)


def compute_renyi_motion(
    hard: HardLaw, focus: Numbers, margin: Numbers, tempered: Numbers
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(μ', incentive, loss) of the Rényi family with τL = `tempered`; 0 is hard attention.

    `hard` gives the number of classes and the gain L.
    """
    gain, y = np.asarray(hard.log_gain(margin)), np.maximum(tempered, 1e-12)
    # tempered likelihood of the label from another segment, relative to the relevant one
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


PullFunction = Callable[[float, float, float], tuple[float, float]]
"""Maps (time, focus α, margin μ) to (μ', the growth rate of the margin; incentive)."""


class NumericalFlow:
    """Numerical solution of margin μ and score ν up to a time, or until α is `stop_focus`."""

    def __init__(
        self,
        setting: LinearSetting,
        pull: PullFunction,
        until: float,
        *,
        stop_focus: float | None = None,
        tolerance: float = 1e-11,
    ) -> None:
        self.setting = setting

        def compute_derivative(time: float, state: np.ndarray) -> list[float]:
            focus = float(setting.focus_from_score(state[1]))
            margin_rate, incentive = pull(time, focus, float(state[0]))
            # state: (margin, score)
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


def create_pull(law: Law) -> PullFunction:
    """The pull function of a constant law."""

    def pull(_: float, focus: float, margin: float) -> tuple[float, float]:
        return float(law.margin_rate(focus, margin)), float(law.incentive(focus, margin))

    return pull
