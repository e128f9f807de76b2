"""All results of the theory for one setting, as shown by `neural dynamics --theory`.

The setting is the linear model of setting.py: an example has m segments, of which one, the
foreground, decides the class. α is the focus, the attention weight of the foreground. A paradigm is
a loss that trains focus and classifier together: soft or hard attention, or lvml, the latent
variable marginal likelihood (laws.py). A schedule is one paradigm, or a hybrid, which switches from
one to another. A flow is training in continuous time; time is steps × learning rate. The incentive
is −∂loss/∂α. Gradient descent on the same model (linear_model.py) checks the theory.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from neural.core.errors import TaskError
from neural.tasks.focus.theory import asymptotics
from neural.tasks.focus.theory.advice import (
    CANDIDATE_SCHEDULES,
    ScheduleAdvice,
    recommend_schedule,
)
from neural.tasks.focus.theory.annealed import AnnealedFlow, SteepestFlow
from neural.tasks.focus.theory.laws import LAWS, create_law
from neural.tasks.focus.theory.linear_model import DescentResult, run_gradient_descent
from neural.tasks.focus.theory.setting import LinearSetting, check_focus_level
from neural.tasks.focus.theory.trajectory import (
    FlowSequence,
    Trajectory,
    create_flow,
    find_best_switch,
)

DEFAULT_FOCUS_LEVELS = (0.5, 0.9, 0.95)
"""Values of α, ascending; the time until each is reached is reported."""
HYBRID_SCHEDULES = tuple(names for names in CANDIDATE_SCHEDULES if len(names) > 1)
MAX_TIME, MIN_LAST_TIME = 1e9, 1e6
"""Largest accepted time, and the time up to which every trajectory is computed at least."""
MAX_DESCENT_NUMBERS = 500_000
"""Size of the dataset, classes² × segments, above which gradient descent is skipped: too slow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedFocusCurves:
    """Results by paradigm name for a classifier that is trained with a fixed α.

    Arrays are (times, alphas).
    """

    times: tuple[float, ...]
    alphas: tuple[float, ...]
    loss: dict[str, np.ndarray]
    incentive: dict[str, np.ndarray]
    optimal_loss: dict[str, np.ndarray]
    """Limit of the loss for long training, (alphas,)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleResult:
    """Results of one schedule; the weights of the model start at zero."""

    name: str
    """`soft`, or `soft → hard`."""
    times: tuple[float, ...]
    """Time to each focus level."""
    switches: tuple[float, ...]
    """Times at which the next paradigm takes over; empty without a switch."""
    classifier_calls: float
    """Classifier calls per example until the last level; one step is a unit of time."""
    trajectory: Trajectory
    """Predicted trajectory from `until / 1000` to `last_time` (`TheoryOverview`)."""
    descent: DescentResult | None
    """Gradient descent on the linear model up to `last_time`; None if skipped."""
    max_difference: float | None
    """Largest difference between the focus of gradient descent and the predicted focus."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LateRate:
    """Late in training (`last_time`): 1 − α of a paradigm, exact and by asymptotic formulas."""

    name: str
    """Name of the paradigm."""
    formula: str
    """First-order formula, as text."""
    constant: float
    """Its factor κ (asymptotics.py)."""
    exact: float
    leading: float
    """By the first-order formula."""
    refined: float
    """By the second-order formula."""
    slope: float
    """d log(1 − α)/d log t by the formula, in the middle of the last decade of time."""
    slope_exact: float
    """Slope of the exact trajectory, fitted over that decade."""
    slope_measured: float | None
    """Slope of gradient descent, fitted over that decade; None if skipped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchComparison:
    """Two times for a hybrid to switch: at equal incentive, and the fastest, found by search."""

    name: str
    """Name of the hybrid, such as `soft → hard`."""
    equal: float | None
    """Time of the switch at equal incentive; None if it never comes."""
    best: float
    """Time of the fastest switch."""
    time_equal: float
    """Time to the last focus level with the switch at `equal`; `time_best` likewise."""
    time_best: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TheoryOverview:
    """All results for one setting."""

    setting: LinearSetting
    until: float
    last_time: float
    """Time of the late rates: 10⁶, or `until` if that is later."""
    levels: tuple[float, ...]
    fixed_focus: FixedFocusCurves
    schedules: tuple[ScheduleResult, ...]
    late_rates: tuple[LateRate, ...]
    switches: tuple[SwitchComparison, ...]
    advice: ScheduleAdvice


def compute_overview(
    setting: LinearSetting,
    *,
    alphas: Sequence[float],
    until: float | None = None,
    levels: Sequence[float] = DEFAULT_FOCUS_LEVELS,
    points: int = 400,
    fine_steps: bool = False,
) -> TheoryOverview:
    """Compute all results from time 0 to `until` (default: when soft reaches the last level).

    `alphas` are the focus values of `fixed_focus`, `points` the number of points of a trajectory.
    The steps of gradient descent are small enough for plots, or with `fine_steps` for an accuracy
    of three digits.
    """
    for alpha in alphas:
        check_focus_level(alpha)
    last_level = levels[-1]
    # keys are the names of the stages: ("soft",), ("soft", "hard")
    flows = {names: create_flow(setting, *names) for names in CANDIDATE_SCHEDULES}
    if until is None:
        until = _round_up(min(flows[("soft",)].time_to(last_level), MAX_TIME))
    if not 1 <= until <= MAX_TIME:
        raise TaskError(f"the last time must be from 1 to {MAX_TIME:,.0f}, got {until:g}")
    last_time = max(until, MIN_LAST_TIME)
    times = np.geomspace(until / 1000, last_time, points)
    steepest = SteepestFlow(setting)
    all_flows: dict[tuple[str, ...], FlowSequence | AnnealedFlow] = {
        **flows,
        (steepest.name,): steepest,
    }
    schedules = {
        names: _create_schedule_result(
            setting, flow, times, levels, _run_descent(setting, names, last_time, fine_steps)
        )
        for names, flow in all_flows.items()
    }
    return TheoryOverview(
        setting=setting,
        until=until,
        last_time=last_time,
        levels=tuple(levels),
        fixed_focus=compute_fixed_focus(setting, alphas, until),
        schedules=tuple(schedules.values()),
        late_rates=tuple(
            _compute_late_rate(setting, name, last_time, schedules[(name,)].descent)
            for name in LAWS
        ),
        switches=tuple(
            _compare_switches(setting, names, flows[names], last_level)
            for names in HYBRID_SCHEDULES
        ),
        advice=recommend_schedule(
            setting.classes, setting.segments, level=last_level, rate=setting.rate
        ),
    )


def compute_fixed_focus(
    setting: LinearSetting, alphas: Sequence[float], until: float
) -> FixedFocusCurves:
    """Curves at 1 %, 10 % and 100 % of the time `until`."""
    times = until / 100, until / 10, until
    loss, incentive, optimal_loss = {}, {}, {}
    for name in LAWS:
        law = create_law(name, setting.classes)
        margins = np.array(
            [law.margin_at_fixed_focus(alpha, np.array(times)) for alpha in alphas]
        ).T
        focus = np.array(alphas)  # margins: (time, α)
        loss[name], incentive[name] = law.loss(focus, margins), law.incentive(focus, margins)
        optimal_loss[name] = np.asarray(law.best_loss(focus))
    return FixedFocusCurves(
        times=times, alphas=tuple(alphas), loss=loss, incentive=incentive, optimal_loss=optimal_loss
    )


def _run_descent(
    setting: LinearSetting, names: tuple[str, ...], last_time: float, fine_steps: bool
) -> DescentResult | None:
    """Gradient descent on the linear model; None if it would be too slow."""
    if setting.classes**2 * setting.segments > MAX_DESCENT_NUMBERS:
        return None
    # learning rate, and the largest change of a weight per step
    step, stride = (0.02, 0.001) if fine_steps else (0.05, 0.02)
    return run_gradient_descent(setting, names, last_time, step=step, stride=stride)


def _create_schedule_result(
    setting: LinearSetting,
    flow: FlowSequence | AnnealedFlow,
    times: np.ndarray,
    levels: Sequence[float],
    descent: DescentResult | None,
) -> ScheduleResult:
    last_level = levels[-1]
    rise_times = np.array(
        [flow.time_to(focus) for focus in np.linspace(1 / setting.segments, last_level, 32)[1:]]
    )
    rise_times = rise_times[(rise_times > times[0]) & (rise_times < times[-1])]
    # With many segments the focus rises in a short time; add points there.
    times = np.sort(np.concatenate([times, rise_times]))
    calls = (
        flow.classifier_calls_to(last_level)
        if isinstance(flow, FlowSequence)
        else setting.segments * flow.time_to(last_level)
    )
    return ScheduleResult(
        name=flow.name,
        times=tuple(flow.times_to(levels)),
        switches=flow.switches,
        classifier_calls=calls,
        trajectory=flow.trajectory(times),
        descent=descent,
        max_difference=None if descent is None else _max_focus_difference(flow, descent),
    )


def _max_focus_difference(
    flow: FlowSequence | AnnealedFlow, descent: DescentResult, points: int = 200
) -> float:
    """Largest difference of the focus at `points` steps, evenly spaced in the step index."""
    sampled = np.unique(np.linspace(0, len(descent.time) - 1, points).astype(int))
    return float(
        np.abs(descent.focus[sampled] - flow.trajectory(descent.time[sampled]).focus).max()
    )


def _compute_late_rate(
    setting: LinearSetting, name: str, last_time: float, descent: DescentResult | None
) -> LateRate:
    law = create_law(name, setting.classes)
    decade = np.geomspace(last_time / 10, last_time, 20)
    gap = 1 - create_flow(setting, name).trajectory(decade).focus
    exact = float(gap[-1])
    late_steps = None if descent is None else descent.time >= last_time / 10
    return LateRate(
        slope=asymptotics.compute_slope(law, last_time / math.sqrt(10)),
        slope_exact=_fit_slope(decade, gap),
        slope_measured=None
        if descent is None
        else _fit_slope(descent.time[late_steps], 1 - descent.focus[late_steps]),
        name=name,
        formula=asymptotics.format_formula(law),
        constant=asymptotics.compute_constant(setting, law),
        exact=exact,
        leading=float(asymptotics.first_order_gap(setting, law, last_time)),
        refined=float(asymptotics.second_order_gap(setting, law, last_time)),
    )


def _compare_switches(
    setting: LinearSetting, names: tuple[str, ...], equal_flow: FlowSequence, level: float
) -> SwitchComparison:
    """`equal_flow` is the hybrid of `names` that switches at equal incentive."""
    first, then = (create_law(name, setting.classes) for name in names)
    best_flow = find_best_switch(setting, first, then, level)
    return SwitchComparison(
        name=best_flow.name,
        equal=equal_flow.switches[0] if equal_flow.switches else None,
        best=best_flow.switches[0],
        time_equal=equal_flow.time_to(level),
        time_best=best_flow.time_to(level),
    )


def _fit_slope(times: np.ndarray, values: np.ndarray) -> float:
    """Slope of a line fitted to log values over log times."""
    return float(np.polyfit(np.log(times), np.log(values), 1)[0])


def _round_up(time: float) -> float:
    """Round up to two digits, at least 10."""
    unit = 10.0 ** (math.floor(math.log10(max(time, 1.0))) - 1)
    return max(10.0, math.ceil(time / unit) * unit)
