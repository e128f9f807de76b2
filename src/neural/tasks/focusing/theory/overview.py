"""Everything that the theory says of one setting, as numbers: what `neural dynamics --theory` shows and draws."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from neural.tasks.focusing.theory import late
from neural.tasks.focusing.theory.advice import CANDIDATES, Advice, advised
from neural.tasks.focusing.theory.annealed import Annealed, Steepest
from neural.tasks.focusing.theory.course import Course, best_switch, course
from neural.tasks.focusing.theory.laws import NAMED, law
from neural.tasks.focusing.theory.linear import Measured, descend
from neural.tasks.focusing.theory.motion import Trajectory
from neural.tasks.focusing.theory.setting import Setting, is_focus
from neural.tasks.task import TaskError

LEVELS = (0.5, 0.9, 0.95)
HYBRIDS = tuple(one for one in CANDIDATES if len(one) > 1)
LONGEST, LATE = 1e9, 1e6
"""The latest time that can be asked for, and the one up to which every path is followed at least."""
MOST = 500_000
"""Numbers in the data set times classes; gradient descent on more would keep one waiting."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """Loss and incentive of each paradigm, (time, α), the classifier trained so long under a focus held at α."""

    times: tuple[float, ...]
    alphas: tuple[float, ...]
    loss: dict[str, np.ndarray]
    incentive: dict[str, np.ndarray]
    best: dict[str, np.ndarray]
    """The loss that training tends to, (α)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """One paradigm or several after each other, from zero."""

    name: str
    times: tuple[float, ...]
    """To each of the levels."""
    switches: tuple[float, ...]
    calls: float
    """Of the classifier per example until the last level, one step being a unit of time."""
    path: Trajectory
    """From a thousandth of the time asked for; as far as `far`."""
    measured: Measured | None
    """Gradient descent on the real linear model, as far as `far`; None where it was not run."""
    apart: float | None
    """The largest difference between its focus and the predicted one, at any time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finish:
    """How one paradigm ends: 1 − α at the time `far`, exactly and by the formula to first and next order."""

    name: str
    formula: str
    constant: float
    exact: float
    leading: float
    refined: float
    slope: float
    """d log(1 − α)/d log t by the formula, in the middle of the last decade."""
    slope_exact: float
    """The same of the exact path, fitted over that decade."""
    slope_measured: float | None
    """And of gradient descent; None where it was not run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Switch:
    """Where a hybrid switches, by equal incentive and by search for the soonest to the last level."""

    name: str
    equal: float | None
    best: float
    time_equal: float
    time_best: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """All of it."""

    setting: Setting
    until: float
    far: float
    """Where the late rates are looked at: a million, or `until` where that is later."""
    levels: tuple[float, ...]
    held: Held
    schedules: tuple[Schedule, ...]
    finishes: tuple[Finish, ...]
    switches: tuple[Switch, ...]
    advice: Advice


def overview(
    setting: Setting, *, alphas: Sequence[float], until: float | None = None, levels: Sequence[float] = LEVELS,
    points: int = 400, finely: bool = False,
) -> Overview:  # fmt: skip
    """What happens from time 0 to `until`; by default to where soft attention reaches the last level.

    The model is measured in steps small enough to draw, or `finely`, small enough to compare the third digit.
    """
    for alpha in alphas:
        is_focus(alpha)
    last = levels[-1]
    courses = {names: course(setting, *names) for names in CANDIDATES}
    if until is None:
        until = _round_up(min(courses[("soft",)].time_to(last), LONGEST))
    if not 1 <= until <= LONGEST:
        raise TaskError(f"the last time must be from 1 to {LONGEST:,.0f}, got {until:g}")
    far = max(until, LATE)
    times = np.geomspace(until / 1000, far, points)
    steepest = Steepest(setting)
    followed: dict[tuple[str, ...], Course | Annealed] = {**courses, (steepest.name,): steepest}
    schedules = {names: _schedule(setting, one, times, levels, _measured(setting, names, far, finely))
                 for names, one in followed.items()}  # fmt: skip
    return Overview(
        setting=setting, until=until, far=far, levels=tuple(levels), held=held(setting, alphas, until),
        schedules=tuple(schedules.values()),
        finishes=tuple(_finish(setting, name, far, schedules[(name,)].measured) for name in NAMED),
        switches=tuple(_switch(setting, names, courses[names], last) for names in HYBRIDS),
        advice=advised(setting.classes, setting.segments, level=last, rate=setting.rate),
    )  # fmt: skip


def held(setting: Setting, alphas: Sequence[float], until: float) -> Held:
    """At a hundredth, a tenth and the whole of the time."""
    times = until / 100, until / 10, until
    loss, incentive, best = {}, {}, {}
    for name in NAMED:
        one = law(name, setting.classes)
        margins = np.array([one.held_margin(alpha, np.array(times)) for alpha in alphas]).T
        focus = np.array(alphas)
        loss[name], incentive[name] = one.loss(focus, margins), one.incentive(focus, margins)
        best[name] = np.asarray(one.best_loss(focus))
    return Held(times=times, alphas=tuple(alphas), loss=loss, incentive=incentive, best=best)


def _measured(setting: Setting, names: tuple[str, ...], far: float, finely: bool) -> Measured | None:
    if setting.classes**2 * setting.segments > MOST:
        return None
    step, stride = (0.02, 0.001) if finely else (0.05, 0.02)
    return descend(setting, names, far, step=step, stride=stride)


def _schedule(
    setting: Setting, one: Course | Annealed, times: np.ndarray, levels: Sequence[float], measured: Measured | None
) -> Schedule:
    last = levels[-1]
    risen = np.array([one.time_to(focus) for focus in np.linspace(1 / setting.segments, last, 32)[1:]])
    risen = risen[(risen > times[0]) & (risen < times[-1])]
    times = np.sort(np.concatenate([times, risen]))   # with so many segments the rise is short: none of it is missed
    calls = one.calls_to(last) if isinstance(one, Course) else setting.segments * one.time_to(last)
    return Schedule(
        name=one.name, times=tuple(one.times_to(levels)), switches=one.switches, calls=calls,
        path=one.trajectory(times), measured=measured,
        apart=None if measured is None else _apart(one, measured),
    )  # fmt: skip


def _apart(one: Course | Annealed, measured: Measured, points: int = 200) -> float:
    """The largest difference of the focus; steps are as far apart as weights move, so some of them show all."""
    some = np.unique(np.linspace(0, len(measured.time) - 1, points).astype(int))
    return float(np.abs(measured.focus[some] - one.trajectory(measured.time[some]).focus).max())


def _finish(setting: Setting, name: str, far: float, measured: Measured | None) -> Finish:
    one = law(name, setting.classes)
    decade = np.geomspace(far / 10, far, 20)
    path = 1 - course(setting, name).trajectory(decade).focus
    exact = float(path[-1])
    late_steps = None if measured is None else measured.time >= far / 10
    return Finish(
        slope=late.slope(one, far / math.sqrt(10)), slope_exact=_slope(decade, path),
        slope_measured=None if measured is None else _slope(measured.time[late_steps], 1 - measured.focus[late_steps]),
        name=name, formula=late.formula(one), constant=late.constant(setting, one), exact=exact,
        leading=float(late.leading(setting, one, far)), refined=float(late.refined(setting, one, far)),
    )  # fmt: skip


def _switch(setting: Setting, names: tuple[str, ...], equal: Course, level: float) -> Switch:
    first, then = (law(one, setting.classes) for one in names)
    best = best_switch(setting, first, then, level)
    return Switch(
        name=best.name, equal=equal.switches[0] if equal.switches else None, best=best.switches[0],
        time_equal=equal.time_to(level), time_best=best.time_to(level),
    )  # fmt: skip


def _slope(times: np.ndarray, values: np.ndarray) -> float:
    """Of the straight line through the logarithms."""
    return float(np.polyfit(np.log(times), np.log(values), 1)[0])


def _round_up(time: float) -> float:
    """To two digits."""
    unit = 10.0 ** (math.floor(math.log10(max(time, 1.0))) - 1)
    return max(10.0, math.ceil(time / unit) * unit)
