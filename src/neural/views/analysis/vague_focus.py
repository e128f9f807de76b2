"""Right without looking: soft attention is content with a blend, and then its weights explain nothing."""

from __future__ import annotations

from typing import ClassVar

from neural.views.finding import Symptom
from neural.views.focus_trouble import GOOD, SURE, FocusDiagnosis, Standing


class VagueFocus(FocusDiagnosis):
    """An accuracy of 0.9 or more with a largest weight below 0.8 on average: the number is that weight."""

    code: ClassVar[str] = "FOC001"
    claim: ClassVar[str] = "the focus does not commit"
    unit: ClassVar[str] = "largest weight"
    advice: ClassVar[str] = 'go on with `hybrid(then="hard")`'

    def trouble(self, stands: Standing) -> Symptom | None:
        """By the largest weight, which needs no foreground."""
        right, sure = stands.of("accuracy"), stands.of("focus_confidence")
        if not (right >= GOOD and sure < SURE):
            return None
        said = f"right in {right:.0%}, but its largest weight is {sure:.2f} on average: it does not commit"
        return Symptom(sure, said)
