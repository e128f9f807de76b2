"""Confident but wrong focus: it settled on the wrong segment early and stays there."""

from __future__ import annotations

from typing import ClassVar

from neural.analysis.check import Symptom
from neural.analysis.focus_checks import (
    HIGH_CONFIDENCE,
    LOW_DETECTION_SHARE,
    FocusCheck,
    FocusState,
)


class WrongFocus(FocusCheck):
    """A largest weight of 0.8 or more that is on the foreground in less than 0.6 of the examples.

    The number is that share.
    """

    code: ClassVar[str] = "FOC002"
    claim: ClassVar[str] = "the focus is sure and wrong"
    unit: ClassVar[str] = "of the examples with the right focus"
    advice: ClassVar[str] = "start with lvml, or with another seed"

    def find_focus_symptom(self, state: FocusState) -> Symptom | None:
        """Only with a known foreground."""
        confidence, accuracy = state.get("focus_confidence"), state.get("focus_accuracy")
        if not (confidence >= HIGH_CONFIDENCE and accuracy < LOW_DETECTION_SHARE):
            return None
        evidence = f"sure of its focus ({confidence:.2f}), which is wrong in {1 - accuracy:.0%}"
        return Symptom(accuracy, evidence)
