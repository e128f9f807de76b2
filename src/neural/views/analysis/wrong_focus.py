"""Sure and wrong: a focus that settled on the wrong segment early and stays there."""

from __future__ import annotations

from typing import ClassVar

from neural.views.finding import Symptom
from neural.views.focus_trouble import BLIND, SURE, FocusDiagnosis, Standing


class WrongFocus(FocusDiagnosis):
    """A largest weight of 0.8 or more, on the foreground in less than 0.6 of the examples: the number is that share."""

    code: ClassVar[str] = "FOC002"
    claim: ClassVar[str] = "the focus is sure and wrong"
    unit: ClassVar[str] = "of the examples with the right focus"
    advice: ClassVar[str] = "begin with lvml, or with another seed"

    def trouble(self, stands: Standing) -> Symptom | None:
        """Where the foreground is known."""
        sure, looked = stands.of("focus_confidence"), stands.of("focus_accuracy")
        if not (sure >= SURE and looked < BLIND):
            return None
        return Symptom(looked, f"sure of its focus ({sure:.2f}), which is wrong in {1 - looked:.0%}")
