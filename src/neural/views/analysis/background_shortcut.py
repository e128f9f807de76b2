"""The default class: what the focus does not find is still answered right, by taking background for it."""

from __future__ import annotations

from typing import ClassVar

from neural.views.finding import Symptom
from neural.views.focus_trouble import BLIND, GOOD, FocusDiagnosis, Standing

CLASS = "focus_accuracy_class_"


class BackgroundShortcut(FocusDiagnosis):
    """A class found in less than 0.6 of its examples while more than a tenth of all are right with a wrong focus.

    The number is the share of its examples in which the class is found.
    """

    code: ClassVar[str] = "FOC003"
    claim: ClassVar[str] = "background is taken for a class"
    unit: ClassVar[str] = "of its examples found"
    advice: ClassVar[str] = "`background: 0.5`"

    def trouble(self, stands: Standing) -> Symptom | None:
        """The class that is found least."""
        found = {name: value for name, value in stands.scores.items() if name.startswith(CLASS) and value < BLIND}
        by_luck = stands.of("cell_ft")
        if not found or not by_luck > 1 - GOOD:
            return None
        worst = min(found, key=lambda name: found[name])
        number = int(worst.removeprefix(CLASS))
        label = stands.classes[number] if number < len(stands.classes) else str(number)
        return Symptom(found[worst], f"class {label} is found in {found[worst]:.0%} only, and {by_luck:.0%} are right "
                                     "with a wrong focus: background is taken for it")  # fmt: skip
