"""Choice of a schedule for C classes, m segments and a budget; used by `paradigm: auto`.

A schedule is one paradigm (a loss that trains focus and classifier together: soft attention, hard
attention or LVML, the latent variable marginal likelihood; laws.py), or two, one after the other.
The focus is the weight of the foreground, the one segment that decides the class. Times are
predicted by the theory of a linear model (setting.py).
"""

from __future__ import annotations

from dataclasses import dataclass

from neural.core.errors import TaskError
from neural.tasks.focus.theory.numerics import find_root
from neural.tasks.focus.theory.setting import LinearSetting, check_focus_level
from neural.tasks.focus.theory.trajectory import FlowSequence, create_flow

CANDIDATE_SCHEDULES = (("soft",), ("hard",), ("lvml",), ("soft", "hard"), ("lvml", "hard"))
"""Schedules by the names of their paradigms. The fastest one, `steepest` (annealed.py), is missing,
because it needs to know the foreground."""
REASONS = {
    "soft": "soft classifies one mean segment per example, and reaches this focus before it stalls",
    "hard": "with so few segments hard is fastest from the start",
    "lvml": "LVML finds the segment first, and this focus is too low for hard to pay off",
    "soft → hard": "soft classifies one mean segment while the right one is being found, and hard "
    "then finishes at rate 1/t where soft would stall",
    "lvml → hard": "LVML finds the segment first, and hard finishes faster than LVML by the "
    "factor C log C/(C−1)",
}
"""Why a schedule, given by its name, is the best one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleAdvice:
    """A recommended schedule with its predicted cost."""

    stages: tuple[str, ...]
    """Names of one or two paradigms. The second starts when its incentive, −∂loss/∂focus, becomes
    larger than that of the first."""
    focus: float
    """Focus that is reached: the requested level, or less if the budget is too small for it."""
    time: float
    """Time until this focus is reached, in units of learning rate × steps."""
    classifier_calls: float
    """Classifier calls per example until this focus is reached."""
    switch_fraction: float | None
    """Share of the time before the switch; None without a switch."""
    reason: str
    """Reason for the choice, one sentence."""


def recommend_schedule(
    classes: int,
    segments: int,
    budget: float | None = None,
    *,
    level: float = 0.95,
    rate: float = 1.0,
    focus_cost: float = 1.0,
    classifier_cost: float = 1.0,
) -> ScheduleAdvice:
    """Recommend a schedule for C classes, m segments and a budget.

    Without a budget, it is the schedule that reaches a focus of `level` at the lowest cost. A unit
    of time costs m calls of the focus network, at `focus_cost` each, and one (soft) or m (other
    paradigms) calls of the classifier, at `classifier_cost` each. With a budget, in classifier
    calls per example, it is the fastest schedule that reaches the level within the budget, or else
    the one that reaches the largest focus. `rate` is the learning rate of the focus relative to
    that of the classifier.
    """
    setting = LinearSetting(classes, segments, rate)
    if check_focus_level(level) <= 1 / segments:
        raise TaskError(
            f"a focus of {level:g} is reached from the start with m = {segments}: use a larger "
            "level"
        )
    if budget is not None and not budget > 0:
        raise TaskError(
            f"a budget is a number of classifier calls per example above 0, got {budget}"
        )
    flows = {names: create_flow(setting, *names) for names in CANDIDATE_SCHEDULES}
    calls = {names: flow.classifier_calls_to(level) for names, flow in flows.items()}
    times = {names: flow.time_to(level) for names, flow in flows.items()}
    costs = {
        names: focus_cost * segments * times[names] + classifier_cost * calls[names]
        for names in CANDIDATE_SCHEDULES
    }
    affordable = [
        names for names in CANDIDATE_SCHEDULES if budget is None or calls[names] <= budget
    ]
    if not affordable and budget is not None:
        reached = {
            names: _focus_within_budget(flows[names], budget, level)
            for names in CANDIDATE_SCHEDULES
        }
        best = max(CANDIDATE_SCHEDULES, key=lambda names: reached[names])
        reason = (
            f"no schedule reaches a focus of {level:g} within {budget:,.0f} classifier calls per "
            f"example; {flows[best].name} gets furthest, to {reached[best]:.2f}"
        )
        return _create_advice(best, flows[best], reached[best], reason)
    quantity, values = ("cost", costs) if budget is None else ("time", times)
    best = min(affordable, key=lambda names: values[names])
    comparison = ", ".join(
        f"{flows[names].name} {values[names]:,.0f}"
        for names in CANDIDATE_SCHEDULES[:3]
        if names != best
    )
    objective = (
        "cheapest"
        if budget is None
        else f"fastest within {budget:,.0f} classifier calls per example"
    )
    reason = (
        f"{_effective_name(best, flows[best])} is the {objective} to a focus of {level:g} with "
        f"C = {classes}, m = {segments} ({quantity} {values[best]:,.0f}; {comparison}): "
        f"{REASONS[_effective_name(best, flows[best])]}"
    )
    return _create_advice(best, flows[best], level, reason)


def _focus_within_budget(flow: FlowSequence, budget: float, level: float) -> float:
    """Focus reached when the budget of classifier calls is used up."""
    low = (1 + 1e-6) / flow.flows[0].setting.segments
    if flow.classifier_calls_to(low) >= budget:
        return low
    return round(find_root(lambda focus: flow.classifier_calls_to(focus) - budget, low, level), 5)


def _effective_name(names: tuple[str, ...], flow: FlowSequence) -> str:
    """Name of a schedule; a hybrid that switches at time 0 is its second stage alone."""
    return names[-1] if flow.switches and flow.switches[0] == 0 else flow.name


def _create_advice(
    names: tuple[str, ...], flow: FlowSequence, level: float, reason: str
) -> ScheduleAdvice:
    time = flow.time_to(level)
    stages = names if flow.switches and flow.switches[0] > 0 else (_effective_name(names, flow),)
    switch_fraction = min(1.0, flow.switches[0] / time) if len(stages) > 1 else None
    return ScheduleAdvice(
        stages=stages,
        focus=level,
        time=time,
        classifier_calls=flow.classifier_calls_to(level),
        switch_fraction=switch_fraction,
        reason=reason,
    )
