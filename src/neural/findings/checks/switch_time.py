"""Hybrid paradigms that switched at the wrong time.

A focus model (tasks/focus) gives each segment of an example a weight (together: the focus) and
classifies the segment with the largest. A paradigm is the loss that trains it. A hybrid paradigm
trains it with one loss and then switches to another, which sharpens the focus. After a late switch
there is too little time for that. At an early switch the classifier cannot classify single segments
yet, so accuracy falls.
"""

from __future__ import annotations

import math
from typing import ClassVar

from neural.findings.check import Symptom
from neural.findings.figure_data import build_curve
from neural.findings.focus_checks import FocusCheck, FocusState
from neural.findings.record import Record

LATE_SWITCH_SHARE = 0.6
"""A switch after this share of the training steps is too late."""
MAX_ACCURACY_DROP = 0.05
"""If validation accuracy falls by more right after the switch, the switch was too early."""


class SwitchTime(FocusCheck):
    """Reports a switch that was too late or too early.

    A switch is too late after 0.6 of the training steps, or if it never came; it is too early if
    the validation accuracy falls by more than 0.05 after it. The number is the share of the
    training steps before the switch.
    """

    code: ClassVar[str] = "FOC004"
    claim: ClassVar[str] = "the switch came at the wrong time"
    unit: ClassVar[str] = "of the steps came before the switch"
    advice: ClassVar[str] = 'set the time: `hybrid(switch="step", value=…)`'

    def find_symptom(self, run: Record) -> Symptom | None:
        """The symptom at the last validation, with the accuracy around the switch as its picture."""
        symptom = super().find_symptom(run)
        if symptom is None:
            return None
        switches = [(step, "switch") for step, kind, _, _ in run.events() if kind == "switch"]
        return symptom._replace(figure=build_curve(["valid/accuracy"], marks=switches[:1]))

    def find_focus_symptom(self, state: FocusState) -> Symptom | None:
        """Check the time of the switch; None for paradigms that are not hybrid."""
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
