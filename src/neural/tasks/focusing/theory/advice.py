"""Which schedule to train by, for C classes, m segments and a budget: what `paradigm: auto` asks."""

from __future__ import annotations

from dataclasses import dataclass

from neural.tasks.focusing.theory.course import Course, course
from neural.tasks.focusing.theory.integral import root
from neural.tasks.focusing.theory.setting import Setting, is_focus
from neural.tasks.task import TaskError

CANDIDATES = (("soft",), ("hard",), ("lvml",), ("soft", "hard"), ("lvml", "hard"))
"""What can be trained without knowing the foreground; the steepest Rényi order cannot."""
WHY = {
    "soft": "soft reads one mean segment per example, and that focus is reached before it stalls",
    "hard": "with so few segments hard is ahead from the start",
    "lvml": "LVML finds the segment soonest, and so little focus is asked that hard has no time to pay",
    "soft → hard": "soft reads one mean segment while the right one is being found, and hard then finishes at rate 1/t "
                   "where soft would stall",
    "lvml → hard": "LVML finds the segment soonest, and hard finishes faster than LVML by the factor C log C/(C−1)",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """A schedule, what the theory expects of it, and why it was chosen."""

    stages: tuple[str, ...]
    """One paradigm, or two of which the second takes over where its incentive is the larger."""
    focus: float
    """Where it gets to: the level asked for, or less where the budget ends before."""
    time: float
    """Until then, in units of learning rate × steps."""
    calls: float
    """Of the classifier per example, until then."""
    share: float | None
    """The part of that time before the switch; None where there is none."""
    reason: str


def advised(
    classes: int, segments: int, budget: float | None = None, *, level: float = 0.95, rate: float = 1.0,
    focus_cost: float = 1.0, classifier_cost: float = 1.0,
) -> Advice:  # fmt: skip
    """The schedule for C, m and a budget, and why, in one sentence.

    Without a budget: the cheapest to a focus of `level`, where a unit of time costs m calls of the focus and one (soft)
    or m calls of the classifier, each at its cost. With a budget, in calls of the classifier per example (one step
    being a unit of time): the quickest of those that get there within it, or else the one that gets furthest.
    """
    setting = Setting(classes, segments, rate)
    if is_focus(level) <= 1 / segments:
        raise TaskError(f"a focus of {level:g} is there from the start with m = {segments}: ask for more")
    if budget is not None and not budget > 0:
        raise TaskError(f"a budget is a number of classifier calls per example, more than 0, got {budget}")
    courses = {names: course(setting, *names) for names in CANDIDATES}
    calls = {names: one.calls_to(level) for names, one in courses.items()}
    times = {names: one.time_to(level) for names, one in courses.items()}

    costs = {one: focus_cost * segments * times[one] + classifier_cost * calls[one] for one in CANDIDATES}
    within = [one for one in CANDIDATES if budget is None or calls[one] <= budget]
    if not within and budget is not None:
        reached = {one: _reached(courses[one], budget, level) for one in CANDIDATES}
        best = max(CANDIDATES, key=lambda one: reached[one])
        said = (f"no schedule reaches a focus of {level:g} within {budget:,.0f} classifier calls per example; "
                f"{courses[best].name} gets furthest, to {reached[best]:.2f}")  # fmt: skip
        return _advice(best, courses[best], reached[best], said)
    what, measure = ("cost", costs) if budget is None else ("time", times)
    best = min(within, key=lambda one: measure[one])
    against = ", ".join(f"{courses[one].name} {measure[one]:,.0f}" for one in CANDIDATES[:3] if one != best)
    goal = "cheapest" if budget is None else f"quickest within {budget:,.0f} classifier calls per example"
    said = (f"{_name(best, courses[best])} is the {goal} to a focus of {level:g} with C = {classes}, m = {segments} "
            f"({what} {measure[best]:,.0f}; {against}): {WHY[_name(best, courses[best])]}")  # fmt: skip
    return _advice(best, courses[best], level, said)


def _reached(one: Course, budget: float, level: float) -> float:
    """The focus when the budget is spent."""
    low = (1 + 1e-6) / one.motions[0].setting.segments
    if one.calls_to(low) >= budget:
        return low
    return round(root(lambda focus: one.calls_to(focus) - budget, low, level), 5)


def _name(names: tuple[str, ...], found: Course) -> str:
    """Which reason holds: a hybrid that begins with its second stage is that stage alone."""
    return names[-1] if found.switches and found.switches[0] == 0 else found.name


def _advice(names: tuple[str, ...], found: Course, level: float, reason: str) -> Advice:
    time = found.time_to(level)
    stages = names if found.switches and found.switches[0] > 0 else (_name(names, found),)
    share = min(1.0, found.switches[0] / time) if len(stages) > 1 else None
    return Advice(
        stages=stages, focus=level, time=time, calls=found.calls_to(level), share=share, reason=reason,
    )  # fmt: skip
