"""Motions one after the other: hybrids, and where to switch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

import numpy as np
from scipy.optimize import minimize_scalar

from neural.tasks.focusing.theory.law import Law
from neural.tasks.focusing.theory.laws import law
from neural.tasks.focusing.theory.motion import Motion, Trajectory, equal_incentive
from neural.tasks.focusing.theory.setting import Setting
from neural.tasks.focusing.theory.soft import Soft


class Course:
    """One or several motions; `switches` are the times at which the next takes over."""

    def __init__(self, motions: Sequence[Motion], switches: Sequence[float] = ()) -> None:
        self.motions, self.switches = tuple(motions), tuple(switches)

    @property
    def name(self) -> str:
        """`soft`, or `soft → hard`."""
        return " → ".join(one.law.name for one in self.motions)

    def time_to(self, focus: float) -> float:
        """When the focus is so large."""
        begin = 0.0
        for motion, end in zip(self.motions, (*self.switches, np.inf), strict=True):
            time = begin + motion.time_to(focus)
            if time <= end:
                return time
            begin = end
        raise AssertionError("the last motion has no end")

    def calls_to(self, focus: float) -> float:
        """Calls of the classifier per example until the focus is so large, one step being a unit of time."""
        end = self.time_to(focus)
        edges = [0.0, *(min(one, end) for one in self.switches), end]
        stays = np.diff(edges)
        return float(sum(stay * calls(one.law, one.setting) for stay, one in zip(stays, self.motions, strict=True)))

    def times_to(self, levels: Sequence[float]) -> list[float]:
        """When the focus is as large as each of these."""
        return [self.time_to(one) for one in levels]

    def trajectory(self, time: Sequence[float] | np.ndarray) -> Trajectory:
        """Everything at these times, which must not fall."""
        time = np.asarray(time, float)
        cuts = np.searchsorted(time, self.switches, side="left")
        parts = [
            motion.trajectory(own - begin)
            for motion, own, begin in zip(self.motions, np.split(time, cuts), (0.0, *self.switches), strict=True)
        ]
        return joined(time, parts)


def calls(law: Law, setting: Setting) -> int:
    """Calls of the classifier for the loss of one example: soft reads one mean segment, the others every segment."""
    return 1 if isinstance(law, Soft) else setting.segments


def joined(time: np.ndarray, parts: Sequence[Trajectory]) -> Trajectory:
    """The parts one after the other, with one clock."""
    together = {one.name: np.concatenate([getattr(part, one.name) for part in parts]) for one in fields(Trajectory)}
    return Trajectory(**together | {"time": time})


def plain(setting: Setting, law: Law) -> Course:
    """One law from the start to the end."""
    return Course([Motion(setting, law)])


def switched(setting: Setting, first: Law, then: Law, margin: float) -> Course:
    """From the first law to the second where the margin is so large."""
    before = Motion(setting, first)
    after = Motion(setting, then, margin=margin, score=float(before.score_at(margin)))
    return Course([before, after], [float(before.times(margin))])


def hybrid(setting: Setting, first: Law, then: Law) -> Course:
    """Switched where the second law's incentive overtakes; the first alone if it never does."""
    before = Motion(setting, first)
    margin = equal_incentive(before, then)
    return Course([before]) if margin is None else switched(setting, first, then, margin)


def course(setting: Setting, *names: str) -> Course:
    """One law by its name, or two of which the second takes over where it pulls harder."""
    laws = [law(one, setting.classes) for one in names]
    return plain(setting, laws[0]) if len(laws) == 1 else hybrid(setting, *laws)


def best_switch(setting: Setting, first: Law, then: Law, level: float) -> Course:
    """The switch that reaches a focus soonest, by search: a coarse look everywhere, then a fine one around the best."""
    before = Motion(setting, first)
    last = before.margin_to(level)

    def time(margin: float) -> float:
        after = Motion(setting, then, margin=margin, score=float(before.score_at(margin)))
        return float(before.times(margin)) + after.time_to(level)

    margins = np.linspace(0, last, 41)
    best = int(np.argmin([time(one) for one in margins]))
    around = margins[max(0, best - 1)], margins[min(len(margins) - 1, best + 1)]
    found = minimize_scalar(time, bounds=around, method="bounded", options={"xatol": 1e-6 * max(1.0, last)})
    margin = float(found.x) if found.fun <= time(margins[best]) else float(margins[best])
    return switched(setting, first, then, margin)
