"""Rényi orders that fall while one trains: by the steepest incentive, or by the clock.

With y = τL the incentive is L · (e^y − 1)/(y (α e^y + 1 − α)). The y that makes it largest depends on the focus alone:

    α = (y e^y − e^y + 1)/(e^y − 1)²        y → 0 as α → 1/2, y ≈ log m + log log m at α = 1/m

So the order that pulls the focus hardest is τ = y(α)/log(Cβ): infinite at the start, falling, and 0, which is hard
attention, from α = 1/2 on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
from scipy.interpolate import CubicSpline

from neural.tasks.focusing.theory.course import joined
from neural.tasks.focusing.theory.flow import Flow, Pull
from neural.tasks.focusing.theory.motion import Motion, Trajectory
from neural.tasks.focusing.theory.renyi import Hard
from neural.tasks.focusing.theory.setting import Numbers, Setting
from neural.tasks.task import TaskError

FOREVER = 1e9
"""How far an order that falls by the clock is followed."""


def steepness(focus: Numbers) -> np.ndarray:
    """y(α): the order that pulls hardest, times log(Cβ). 0 from α = 1/2 on."""
    focus = np.asarray(focus, float)
    return np.where(focus >= 0.5, 0.0, _inverse()(np.log(np.minimum(focus, 0.5))))


def steepest_order(focus: Numbers, gain: Numbers) -> np.ndarray:
    """τ = y(α)/L. The gain L is log(Cβ): the mean log-probability of the right class where it is, and log C more."""
    with np.errstate(divide="ignore", invalid="ignore"):
        order = steepness(focus) / np.asarray(gain, float)
    return np.where(np.asarray(focus) >= 0.5, 0.0, order)


@cache
def _inverse() -> CubicSpline:
    y = np.concatenate([np.linspace(0, 1, 400)[1:], np.linspace(1, 60, 3000)[1:]])
    focus = (y * np.exp(y) - np.expm1(y)) / np.expm1(y) ** 2
    found = np.log([0.5, *focus])
    return CubicSpline(found[::-1], [0.0, *y][::-1])


class Annealed:
    """A Rényi order that falls by the clock: `order(time)`."""

    name = "annealed"

    def __init__(self, setting: Setting, order: Callable[[float], float], *, until: float = FOREVER) -> None:
        self.setting, self._order = setting, order
        self._hard = Hard(setting.classes)
        self._flow = Flow(setting, self._pull(), until)
        self.switches: tuple[float, ...] = ()

    def time_to(self, focus: float) -> float:
        """When the focus is so large."""
        return self._flow.time_to(focus)

    def times_to(self, levels: Sequence[float]) -> list[float]:
        """When the focus is as large as each of these."""
        return [self.time_to(one) for one in levels]

    def trajectory(self, time: Sequence[float] | np.ndarray) -> Trajectory:
        """Everything at these times."""
        time = np.asarray(time, float)
        margin, score = self._flow.state(time)
        focus = np.asarray(self.setting.focus(score))
        tempered = self._tempered(time, focus, margin)
        _, incentive, loss = moved(self._hard, focus, margin, tempered)
        return Trajectory(
            time=time, margin=margin, score=score, focus=focus, loss=loss, incentive=incentive,
            right=np.asarray(self._hard.right(focus, margin)),
        )  # fmt: skip

    def _tempered(self, time: Numbers, focus: Numbers, margin: Numbers) -> np.ndarray:
        """y = τL."""
        orders = np.vectorize(self._order, otypes=[float])(time)
        return orders * np.asarray(self._hard.gain(margin))

    def _pull(self) -> Pull:
        def pull(time: float, focus: float, margin: float) -> tuple[float, float]:
            pace, incentive, _ = moved(self._hard, focus, margin, self._tempered(time, focus, margin))
            return float(pace), float(incentive)

        return pull


class Steepest(Annealed):
    """The order that pulls hardest at every moment, `most` at most; hard attention, solved, once the focus is 1/2."""

    name = "steepest"

    def __init__(self, setting: Setting, *, most: float = math.inf) -> None:
        self.setting, self._hard, self._most = setting, Hard(setting.classes), most
        self.margin, score, begin = 0.0, 0.0, 0.0
        if setting.segments > 2:
            self._flow = Flow(setting, self._pull(), FOREVER, enough=0.5)
            begin = self._flow.end
            margin, score = self._flow.state(begin)
            self.margin, score = float(margin), float(score)
        self.switches = (begin,)
        self._after = Motion(setting, self._hard, margin=self.margin, score=score)

    def time_to(self, focus: float) -> float:
        """When the focus is so large."""
        return self._flow.time_to(focus) if focus < 0.5 else self.switches[0] + self._after.time_to(focus)

    def trajectory(self, time: Sequence[float] | np.ndarray) -> Trajectory:
        """Everything at these times, which must not fall."""
        time = np.asarray(time, float)
        early, late = np.split(time, [np.searchsorted(time, self.switches[0])])
        parts = [super().trajectory(early)] if len(early) else []
        return joined(time, [*parts, self._after.trajectory(late - self.switches[0])])

    def _tempered(self, time: Numbers, focus: Numbers, margin: Numbers) -> np.ndarray:
        gain = np.asarray(self._hard.gain(margin))
        highest = self._most * gain if math.isfinite(self._most) else math.inf
        return np.minimum(steepness(focus), highest)


def moved(
    hard: Hard, focus: Numbers, margin: Numbers, tempered: Numbers
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """μ', incentive and loss of the Rényi family where τL is `tempered`; 0 is hard attention."""
    gain, y = np.asarray(hard.gain(margin)), np.maximum(tempered, 1e-12)
    doubt = np.exp(-y)
    mixed = focus + (1 - focus) * doubt
    pace = focus / mixed / (np.exp(margin) + hard.others)
    incentive = gain * -np.expm1(-y) / (y * mixed)
    loss = math.log(hard.classes) - gain - gain * np.log1p((1 - focus) * np.expm1(-y)) / y
    return pace, incentive, loss


def falling(first: float, last: float, over: float) -> Callable[[float], float]:
    """From the first order to the last, by the same factor in every unit of time, and constant afterwards."""
    if not (first >= last > 0 and over > 0):
        raise TaskError(f"an order falls from above to below, over some time: got {first:g} to {last:g} over {over:g}")
    return lambda time: first * (last / first) ** min(time / over, 1.0)
