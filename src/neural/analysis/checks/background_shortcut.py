"""Background as a default class: examples are classified right although the focus is wrong.

A focus model (tasks/focus) weights the segments of an example, its focus, and classifies the one in
focus. Only the foreground segment shows the class; a wrong focus is on a background segment.
"""

from __future__ import annotations

from typing import ClassVar

from neural.analysis.check import Symptom
from neural.analysis.focus_checks import GOOD_ACCURACY, LOW_DETECTION_SHARE, FocusCheck, FocusState

CLASS_METRIC_PREFIX = "focus_accuracy_class_"
"""Followed by the class index: share of its examples whose focus is on the foreground."""


class BackgroundShortcut(FocusCheck):
    """A class is found in less than 0.6 of its examples; over a tenth are right with wrong focus.

    The number is the share of its examples in which the focus finds the class.
    """

    code: ClassVar[str] = "FOC003"
    claim: ClassVar[str] = "background is taken for a class"
    unit: ClassVar[str] = "of its examples found"
    advice: ClassVar[str] = "`background: 0.5`"

    def find_focus_symptom(self, state: FocusState) -> Symptom | None:
        """By the class that is found least often."""
        found_shares = {
            name: value
            for name, value in state.scores.items()
            if name.startswith(CLASS_METRIC_PREFIX) and value < LOW_DETECTION_SHARE
        }
        right_by_shortcut = state.get("cell_ft")  # share: focus wrong (f), prediction right (t)
        if not found_shares or not right_by_shortcut > 1 - GOOD_ACCURACY:
            return None
        worst_metric = min(found_shares, key=lambda name: found_shares[name])
        class_index = int(worst_metric.removeprefix(CLASS_METRIC_PREFIX))
        is_named = class_index < len(state.classes)
        label = state.classes[class_index] if is_named else str(class_index)
        return Symptom(
            found_shares[worst_metric],
            f"class {label} is found in {found_shares[worst_metric]:.0%} only, and "
            f"{right_by_shortcut:.0%} are right "
            "with a wrong focus: background is taken for it",
        )
