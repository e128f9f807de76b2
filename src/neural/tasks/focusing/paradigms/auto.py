"""Whatever the theory of the linear orthogonal setting advises for so many classes and segments."""

from __future__ import annotations

from neural.tasks.focusing.paradigm import Paradigm
from neural.tasks.focusing.paradigms import registry
from neural.tasks.focusing.paradigms.annealed import Annealed
from neural.tasks.focusing.paradigms.hybrid import Hybrid
from neural.tasks.focusing.paradigms.lvml import Lvml

ONE_BY_ONE = ("lvml", "hard")
SLOWER = 1.05
"""What a schedule that reads segments one by one may take longer and still be preferred."""


class Auto(Lvml):
    """A schedule chosen by the theory, read by the few segments that have the focus; marginal likelihood until then."""

    def advised(self, classes: int, segments: int, steps: int) -> tuple[Paradigm, str]:
        """The schedule for so many classes, segments and steps, and why; a switch comes at the theory's share of them.

        Where LVML → hard is as quick as what begins with a blend, it is taken instead: its cost falls with the focus,
        and a class that is hard to find cannot hide in the blend. It glides from one to the other (Rényi's τ falls from
        1 to 0) and is halfway where the theory switches: on real pictures classes are found at different times, and a
        switch comes too early for some of them.
        """
        from neural.tasks.focusing.theory.advice import advised  # scipy, which nothing else here needs
        from neural.tasks.focusing.theory.course import course
        from neural.tasks.focusing.theory.setting import Setting

        found = advised(classes, segments)
        stages, share, reason = found.stages, found.share, found.reason
        if stages[0] == "soft":
            other = course(Setting(classes, segments, 1.0), *ONE_BY_ONE)
            time = other.time_to(found.focus)
            if time <= SLOWER * found.time:
                stages, share = ONE_BY_ONE, min(1.0, other.switches[0] / time)
                reason = (
                    f"with C = {classes}, m = {segments} LVML → hard takes {time:,.0f} units of time to a focus of "
                    f"{found.focus:g}, soft first {found.time:,.0f}, and its cost falls as the focus grows"
                )
        if stages == ONE_BY_ONE and share is not None:
            until = min(1.0, 2 * share)
            return Annealed(start=1.0, end=0.0, until=until), (
                f"auto: {reason}; it glides from one to the other and is there after step {round(until * steps)}"
            )
        first, *rest = (registry.get(name)() for name in stages)
        if not rest or share is None:
            return first, f"auto: {reason}"
        at = max(1, round(share * steps))
        made = Hybrid(first=first, then=rest[0], switch="step", value=at)
        return made, f"auto: {reason}; it switches after step {at}"
