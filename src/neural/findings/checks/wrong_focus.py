"""Confident but wrong focus: it settled on the wrong segment early and stays there.

A focus model (tasks/focus) gives each segment of an example a weight (together: the focus) and
classifies the segment with the largest. Only the foreground segment shows the class; the focus is
wrong if the largest weight is on another segment.
"""

from __future__ import annotations

from typing import ClassVar

from neural.findings.check import Symptom
from neural.findings.figure_data import build_curve
from neural.findings.focus_checks import (
    HIGH_CONFIDENCE,
    LOW_DETECTION_SHARE,
    FocusCheck,
    FocusState,
)


class WrongFocus(FocusCheck):
    """Reports a model whose largest weights are large but seldom on the foreground.

    The number is the share of examples with the largest weight on the foreground. It is reported if
    it is below 0.6 and the largest weight is 0.8 or more on average.
    """

    code: ClassVar[str] = "FOC002"
    claim: ClassVar[str] = "the focus is sure and wrong"
    unit: ClassVar[str] = "of the examples have a right focus"
    advice: ClassVar[str] = (
        'train first with another loss, `hybrid(first="lvml")`, or with another seed'
    )

    def find_focus_symptom(self, state: FocusState) -> Symptom | None:
        """Check largest weight and focus accuracy; None if the foreground is unknown (NaN)."""
        confidence, focus_accuracy = state.get("focus_confidence"), state.get("focus_accuracy")
        if not (confidence >= HIGH_CONFIDENCE and focus_accuracy < LOW_DETECTION_SHARE):
            return None
        wrong_share = 1 - focus_accuracy
        evidence = (
            f"the largest weight is {confidence:.2f} on average, but it is on a wrong segment in "
            f"{wrong_share:.0%} of the examples"
        )
        figure = build_curve(
            ["valid/focus_confidence", "valid/focus_accuracy"], levels=[(HIGH_CONFIDENCE, "sure")]
        )
        return Symptom(focus_accuracy, evidence, figure=figure)
