"""Hybrid paradigms that switched at the wrong time.

A focus model (tasks/focus) weights the segments of an example, its focus, and classifies the one in
focus. A hybrid paradigm trains it with one loss, then switches to another that sharpens the focus.
After a late switch the second paradigm has no time to sharpen the focus. After an early one the
classifier cannot classify single segments yet.
"""

from __future__ import annotations

import math
from typing import ClassVar

from neural.analysis.check import Symptom
from neural.analysis.focus_checks import FocusCheck, FocusState

LATE_SWITCH_SHARE, MAX_ACCURACY_DROP = 0.6, 0.05
"""Share of the steps after which a switch is late; tolerated loss of accuracy right after it."""


class SwitchTime(FocusCheck):
    """A switch after 0.6 of the steps, no switch, or a loss of accuracy above 0.05 after it.

    The number is the share of the steps before the switch.
    """

    code: ClassVar[str] = "FOC004"
    claim: ClassVar[str] = "the switch came at the wrong time"
    unit: ClassVar[str] = "of the steps"
    advice: ClassVar[str] = 'set the time: `hybrid(switch="step", value=…)`'

    def find_focus_symptom(self, state: FocusState) -> Symptom | None:
        """Hybrids only."""
        if not state.paradigm.startswith("hybrid") or "switch_share" not in state.scores:
            return None
        switch_share, accuracy_drop = state.get("switch_share"), state.get("switch_accuracy_drop")
        if math.isnan(switch_share):
            return Symptom(1.0, "it never switched")
        if switch_share > LATE_SWITCH_SHARE:
            return Symptom(switch_share, f"it switched after {switch_share:.0%} of the steps")
        if accuracy_drop > MAX_ACCURACY_DROP:
            evidence = (
                f"it switched after {switch_share:.0%} of the steps, and accuracy fell by "
                f"{accuracy_drop:.2f} then: too early"
            )
            return Symptom(switch_share, evidence)
        return None
