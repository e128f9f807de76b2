"""Closed-form gradient flows of focus and classifier; hybrids, and where to switch.

A law (laws.py) is the equations of one loss, such as soft or hard attention. A flow is training in
continuous time with one law, for the linear model of setting.py: an example has m segments, of
which one, the foreground, decides the class. The state of a flow is the margin μ of the classifier
and the focus score ν of the foreground; ν determines the focus α, the attention weight of the
foreground. The incentive of a law is −∂loss/∂α. A hybrid switches from one law to another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from scipy.optimize import minimize_scalar

from neural.tasks.focus.theory.laws import Law, SoftLaw, create_law
from neural.tasks.focus.theory.numerics import InvertibleIntegral, find_root
from neural.tasks.focus.theory.setting import LinearSetting, check_focus_level


class FlowSequence:
    """One flow, or several in sequence; `switches` are the times at which the next one starts."""

    def __init__(self, flows: Sequence[ClosedFormFlow], switches: Sequence[float] = ()) -> None:
        self.flows, self.switches = tuple(flows), tuple(switches)

    @property
    def name(self) -> str:
        """`soft`, or `soft → hard`."""
        return " → ".join(flow.law.name for flow in self.flows)

    def time_to(self, focus: float) -> float:
        """Time at which the focus reaches a level."""
        start = 0.0
        for flow, end in zip(self.flows, (*self.switches, np.inf), strict=True):
            time = start + flow.time_to(focus)
            if time <= end:
                return time
            start = end
        raise AssertionError("the last flow has no end")

    def classifier_calls_to(self, focus: float) -> float:
        """Classifier calls per example until the focus reaches a level; one step per time unit."""
        end = self.time_to(focus)
        boundaries = [0.0, *(min(switch, end) for switch in self.switches), end]
        durations = np.diff(boundaries)
        return float(
            sum(
                duration * classifier_calls_per_step(flow.law, flow.setting)
                for duration, flow in zip(durations, self.flows, strict=True)
            )
        )

    def times_to(self, levels: Sequence[float]) -> list[float]:
        """Times at which the focus reaches each level."""
        return [self.time_to(level) for level in levels]

    def trajectory(self, time: Sequence[float] | np.ndarray) -> Trajectory:
        """All quantities at these times, which must be sorted."""
        time = np.asarray(time, float)
        split_indices = np.searchsorted(time, self.switches, side="left")
        trajectories = [
            flow.trajectory(times - start)
            for flow, times, start in zip(
                self.flows, np.split(time, split_indices), (0.0, *self.switches), strict=True
            )
        ]
        return concatenate_trajectories(time, trajectories)


def classifier_calls_per_step(law: Law, setting: LinearSetting) -> int:
    """Classifier calls per example and step: one for soft (the mean segment), else m."""
    return 1 if isinstance(law, SoftLaw) else setting.segments


def concatenate_trajectories(time: np.ndarray, parts: Sequence[Trajectory]) -> Trajectory:
    """Concatenate trajectories; `time` replaces their own times."""
    arrays = {
        field.name: np.concatenate([getattr(trajectory, field.name) for trajectory in parts])
        for field in fields(Trajectory)
    }
    return Trajectory(**arrays | {"time": time})


def follow_law(setting: LinearSetting, law: Law) -> FlowSequence:
    """Flow of one law."""
    return FlowSequence([ClosedFormFlow(setting, law)])


def switch_at_margin(setting: LinearSetting, first: Law, then: Law, margin: float) -> FlowSequence:
    """Hybrid that switches from the law `first` to the law `then` when μ reaches `margin`."""
    first_flow = ClosedFormFlow(setting, first)
    then_flow = ClosedFormFlow(
        setting, then, margin=margin, score=float(first_flow.score_at(margin))
    )
    return FlowSequence([first_flow, then_flow], [float(first_flow.time_integral(margin))])


def switch_at_equal_incentive(setting: LinearSetting, first: Law, then: Law) -> FlowSequence:
    """Hybrid that switches when the incentive of the law `then` exceeds that of `first`.

    If it never does, the flow of `first` alone.
    """
    first_flow = ClosedFormFlow(setting, first)
    margin = find_equal_incentive(first_flow, then)
    return (
        FlowSequence([first_flow])
        if margin is None
        else switch_at_margin(setting, first, then, margin)
    )


def create_flow(setting: LinearSetting, *names: str) -> FlowSequence:
    """Flow of one law by name, or of two that switch at equal incentive."""
    laws = [create_law(name, setting.classes) for name in names]
    return (
        follow_law(setting, laws[0])
        if len(laws) == 1
        else switch_at_equal_incentive(setting, *laws)
    )


def find_best_switch(setting: LinearSetting, first: Law, then: Law, level: float) -> FlowSequence:
    """Hybrid whose switch makes it reach a focus level fastest: grid search, then refinement."""
    first_flow = ClosedFormFlow(setting, first)
    max_margin = first_flow.margin_to(level)

    def compute_time(margin: float) -> float:
        then_flow = ClosedFormFlow(
            setting, then, margin=margin, score=float(first_flow.score_at(margin))
        )
        return float(first_flow.time_integral(margin)) + then_flow.time_to(level)

    margins = np.linspace(0, max_margin, 41)
    best_index = int(np.argmin([compute_time(margin) for margin in margins]))
    bounds = margins[max(0, best_index - 1)], margins[min(len(margins) - 1, best_index + 1)]
    result = minimize_scalar(
        compute_time,
        bounds=bounds,
        method="bounded",
        options={"xatol": 1e-6 * max(1.0, max_margin)},
    )
    coarse = float(margins[best_index])
    margin = float(result.x) if result.fun <= compute_time(coarse) else coarse
    return switch_at_margin(setting, first, then, margin)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trajectory:
    """Quantities of a flow at given times, one array each."""

    time: np.ndarray
    margin: np.ndarray
    score: np.ndarray
    focus: np.ndarray
    loss: np.ndarray
    incentive: np.ndarray
    label_probability: np.ndarray
    """Probability of the label by the paradigm's prediction rule."""


class ClosedFormFlow:
    """Flow of one law from an initial margin and score, at which time is 0."""

    def __init__(
        self, setting: LinearSetting, law: Law, *, margin: float = 0.0, score: float = 0.0
    ) -> None:
        self.setting, self.law, self.margin, self.score = setting, law, margin, score
        self.invariant = float(setting.score_integral(score)) - setting.rate * float(
            law.margin_integral(margin)
        )
        """F(ν) − r G(μ), which is constant in time: F is `score_integral`, G `margin_integral`, r
        `rate`. So μ determines ν."""
        self.time_integral = InvertibleIntegral(self._time_density, margin)
        """Time as a function of the margin."""

    def score_at(self, margin: float | np.ndarray) -> np.ndarray:
        """ν at a margin."""
        return np.asarray(
            self.setting.invert_score_integral(
                self.setting.rate * self.law.margin_integral(margin) + self.invariant
            )
        )

    def focus_at(self, margin: float | np.ndarray) -> np.ndarray:
        """α at a margin."""
        return np.asarray(self.setting.focus_from_score(self.score_at(margin)))

    def margin_to(self, focus: float) -> float:
        """μ at which the focus reaches a level; the initial margin if already reached."""
        target = (
            float(
                self.setting.score_integral(self.setting.score_from_focus(check_focus_level(focus)))
            )
            - self.invariant
        ) / self.setting.rate
        if self.law.margin_integral(self.margin) >= target:
            return self.margin
        upper = self.margin + 1.0
        while self.law.margin_integral(upper) < target:
            upper *= 2
        return find_root(
            lambda margin: self.law.margin_integral(margin) - target, self.margin, upper
        )

    def time_to(self, focus: float) -> float:
        """Time at which the focus reaches a level; infinite beyond `numerics.MAX_INTEGRAL`."""
        return float(self.time_integral(self.margin_to(focus)))

    def trajectory(self, time: np.ndarray) -> Trajectory:
        """All quantities at these times."""
        margin = self.time_integral.invert(time)
        score = self.score_at(margin)
        focus = np.asarray(self.setting.focus_from_score(score))
        law = self.law
        return Trajectory(
            time=np.asarray(time, float),
            margin=margin,
            score=score,
            focus=focus,
            loss=np.asarray(law.loss(focus, margin)),
            incentive=np.asarray(law.incentive(focus, margin)),
            label_probability=np.asarray(law.label_probability(focus, margin)),
        )

    def _time_density(self, margin: np.ndarray) -> np.ndarray:
        """dt/dμ."""
        return 1 / np.asarray(self.law.margin_rate(self.focus_at(margin), margin))


def find_equal_incentive(flow: ClosedFormFlow, then: Law, *, until: float = 1e9) -> float | None:
    """Margin at which the incentive of `then` exceeds that of the flow's law.

    None if it does not before the time `until`. The initial margin if it is larger from the start,
    which is the case for hard attention with two segments and two classes.
    """

    def compute_incentive_gap(margin: float | np.ndarray) -> np.ndarray:
        focus = flow.focus_at(margin)
        return np.asarray(then.incentive(focus, margin)) - np.asarray(
            flow.law.incentive(focus, margin)
        )

    max_margin = float(flow.time_integral.invert(until))
    margins = np.linspace(flow.margin, max_margin, 2000)[1:]
    is_behind = compute_incentive_gap(margins) < 0
    if not is_behind[0]:
        return flow.margin
    ahead_indices = np.flatnonzero(~is_behind)
    if not len(ahead_indices):
        return None
    return find_root(
        compute_incentive_gap,
        float(margins[ahead_indices[0] - 1]),
        float(margins[ahead_indices[0]]),
    )
