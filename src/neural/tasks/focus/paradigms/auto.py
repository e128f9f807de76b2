"""Automatic choice of a schedule by the theory of focus models (tasks/focus/theory).

A schedule is one paradigm (paradigm.py: a loss for focus and classifier), or two, one after the
other. LVML is the latent variable marginal likelihood. The theory predicts, for a linear model, how
long each schedule takes with C classes and m segments.
"""

from __future__ import annotations

from neural.tasks.focus.paradigm import Paradigm
from neural.tasks.focus.paradigms import registry
from neural.tasks.focus.paradigms.annealed import Annealed
from neural.tasks.focus.paradigms.hybrid import Hybrid
from neural.tasks.focus.paradigms.lvml import Lvml

SEGMENTWISE_STAGES = ("lvml", "hard")
"""The schedule LVML → hard. Both paradigms classify single segments; soft classifies their mean."""
MAX_SLOWDOWN = 1.05
"""LVML → hard is preferred if it takes at most this factor longer than a schedule with soft."""


class Auto(Lvml):
    """Schedule chosen by the theory for the number of classes and segments."""

    def choose_schedule(self, classes: int, segments: int, steps: int) -> tuple[Paradigm, str]:
        """The schedule for a training of `steps` steps, and the reason for it in one sentence.

        If LVML → hard is about as fast as a schedule that starts with soft attention, it is used
        instead, because fewer segments need to be classified as the focus sharpens, and because
        soft attention can predict a class from the weighted mean without finding its segment.

        LVML → hard is implemented without a sudden switch: the order τ of the Rényi loss (1 is
        LVML, 0 is hard) falls linearly from 1 to 0 and is 1/2 at the switch time of the theory. On
        real images the segments of different classes are found at different times, and a sudden
        switch comes too early for some classes.
        """
        from neural.tasks.focus.theory.advice import recommend_schedule
        from neural.tasks.focus.theory.setting import LinearSetting
        from neural.tasks.focus.theory.trajectory import create_flow

        advice = recommend_schedule(classes, segments)
        stages, switch_fraction, reason = advice.stages, advice.switch_fraction, advice.reason
        if stages[0] == "soft":
            segmentwise_flow = create_flow(
                LinearSetting(classes, segments, 1.0), *SEGMENTWISE_STAGES
            )
            time = segmentwise_flow.time_to(advice.focus)
            if time <= MAX_SLOWDOWN * advice.time:
                stages, switch_fraction = (
                    SEGMENTWISE_STAGES,
                    min(1.0, segmentwise_flow.switches[0] / time),
                )
                reason = (
                    f"with C = {classes}, m = {segments} LVML → hard takes {time:,.0f} units of "
                    f"time to a focus of {advice.focus:g}, starting with soft {advice.time:,.0f}, "
                    "and its cost falls as the focus grows"
                )
        if stages == SEGMENTWISE_STAGES and switch_fraction is not None:
            until = min(1.0, 2 * switch_fraction)  # so τ is 1/2 at `switch_fraction`
            return Annealed(start=1.0, end=0.0, until=until), (
                f"auto: {reason}; τ falls gradually and is 0 after step {round(until * steps)}"
            )
        first, *others = (registry.get(name)() for name in stages)
        if not others or switch_fraction is None:
            return first, f"auto: {reason}"
        switch_step = max(1, round(switch_fraction * steps))
        hybrid = Hybrid(first=first, then=others[0], switch="step", value=switch_step)
        return hybrid, f"auto: {reason}; it switches after step {switch_step}"
