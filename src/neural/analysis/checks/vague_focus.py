"""Vague focus: accurate predictions with spread-out weights, which then explain nothing."""

from __future__ import annotations

from typing import ClassVar

from neural.analysis.check import Symptom
from neural.analysis.focus_checks import GOOD_ACCURACY, HIGH_CONFIDENCE, FocusCheck, FocusState


class VagueFocus(FocusCheck):
    """An accuracy of 0.9 or more with a mean largest weight below 0.8; the number is the weight."""

    code: ClassVar[str] = "FOC001"
    claim: ClassVar[str] = "the focus does not commit"
    unit: ClassVar[str] = "largest weight"
    advice: ClassVar[str] = 'continue with `hybrid(then="hard")`'

    def find_focus_symptom(self, state: FocusState) -> Symptom | None:
        """By the largest weight, which needs no foreground."""
        accuracy, confidence = state.get("accuracy"), state.get("focus_confidence")
        if not (accuracy >= GOOD_ACCURACY and confidence < HIGH_CONFIDENCE):
            return None
        evidence = (
            f"right in {accuracy:.0%}, but its largest weight is {confidence:.2f} on average: "
            "it does not commit"
        )
        return Symptom(confidence, evidence)
