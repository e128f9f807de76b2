"""Vague focus: accurate predictions with spread-out weights, which do not explain them.

A focus model (tasks/focus) gives each segment of an example a weight (together: the focus) and
classifies the example by the weighted segments.
"""

from __future__ import annotations

from typing import ClassVar

from neural.findings.check import Symptom
from neural.findings.figure_data import build_curve
from neural.findings.focus_checks import GOOD_ACCURACY, HIGH_CONFIDENCE, FocusCheck, FocusState


class VagueFocus(FocusCheck):
    """Reports an accurate model whose largest weight is small: its focus is on several segments.

    The number is the largest weight of an example, averaged over examples. It is reported if it is
    below 0.8 and the accuracy is at least 0.9.
    """

    code: ClassVar[str] = "FOC001"
    claim: ClassVar[str] = "the focus does not commit"
    unit: ClassVar[str] = "mean largest weight"
    advice: ClassVar[str] = 'continue with `hybrid(then="hard")`'

    def find_focus_symptom(self, state: FocusState) -> Symptom | None:
        """Check accuracy and largest weight; the foreground segments need not be known."""
        accuracy, confidence = state.get("accuracy"), state.get("focus_confidence")
        if not (accuracy >= GOOD_ACCURACY and confidence < HIGH_CONFIDENCE):
            return None
        evidence = (
            f"{accuracy:.0%} of the examples are classified right, but the largest weight is only "
            f"{confidence:.2f} on average"
        )
        figure = build_curve(
            ["valid/accuracy", "valid/focus_confidence"], levels=[(HIGH_CONFIDENCE, "sure")]
        )
        return Symptom(confidence, evidence, figure=figure)
