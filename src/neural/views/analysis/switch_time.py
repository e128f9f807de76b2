"""A hybrid that switched at the wrong time: late or never, the second paradigm has no time to make the focus commit;
early, it takes over a classifier that cannot read single segments yet."""

from __future__ import annotations

import math
from typing import ClassVar

from neural.views.finding import Symptom
from neural.views.focus_trouble import FocusDiagnosis, Standing

LATE, FALL = 0.6, 0.05
"""Share of the steps after which a switch is late; accuracy lost right after it, at the most."""


class SwitchTime(FocusDiagnosis):
    """A switch after 0.6 of the steps, none at all, or one after which accuracy falls by more than 0.05.

    The number is the share of the steps before the switch.
    """

    code: ClassVar[str] = "FOC004"
    claim: ClassVar[str] = "the switch came at the wrong time"
    unit: ClassVar[str] = "of the steps"
    advice: ClassVar[str] = 'set the time: `hybrid(switch="step", value=…)`'

    def trouble(self, stands: Standing) -> Symptom | None:
        """Of hybrids."""
        if not stands.paradigm.startswith("hybrid") or "switched" not in stands.scores:
            return None
        switch, fell = stands.of("switched"), stands.of("fell")
        if math.isnan(switch):
            return Symptom(1.0, "it switched never")
        if switch > LATE:
            return Symptom(switch, f"it switched after {switch:.0%} of the steps")
        if fell > FALL:
            said = f"it switched after {switch:.0%} of the steps, and accuracy fell by {fell:.2f} then: too early"
            return Symptom(switch, said)
        return None
