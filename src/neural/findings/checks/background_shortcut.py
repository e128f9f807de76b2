"""The classifier answers one class for background, so a wrong focus can have a right prediction.

A focus model (tasks/focus) gives each segment of an example a weight (together: the focus) and
classifies the segment with the largest. Only the foreground segment shows the class; the focus is
wrong if the largest weight is on a background segment. A classifier that answers one class whenever
it sees background is right for the examples of that class although the focus is wrong.
"""

from __future__ import annotations

from typing import ClassVar

from neural.findings.check import Symptom
from neural.findings.focus_checks import LOW_DETECTION_SHARE, FocusCheck, FocusState

CLASS_METRIC_PREFIX = "focus_accuracy_class_"
"""Followed by the class index: share of its examples whose focus is on the foreground."""
MAX_SHORTCUT_SHARE = 0.1
"""If a larger share of all examples is classified right with a wrong focus, it is reported."""


class BackgroundShortcut(FocusCheck):
    """Reports the class whose examples have the focus on the foreground least often.

    The number is that share. It is reported if it is below 0.6 and more than a tenth of all
    examples are classified right with a wrong focus: the classifier takes background for the class.
    """

    code: ClassVar[str] = "FOC003"
    claim: ClassVar[str] = "background is taken for a class"
    unit: ClassVar[str] = "of the class's examples have a right focus"
    advice: ClassVar[str] = (
        "set `background: 0.5`, the weight of a loss that makes predictions on segments out of "
        "focus uniform"
    )

    def find_focus_symptom(self, state: FocusState) -> Symptom | None:
        """Find the class whose examples have a right focus least often."""
        found_shares = {
            name: value
            for name, value in state.scores.items()
            if name.startswith(CLASS_METRIC_PREFIX) and value < LOW_DETECTION_SHARE
        }
        # share of examples with a false focus (f) and a true prediction (t)
        right_by_shortcut = state.get("cell_ft")
        if not found_shares or not right_by_shortcut > MAX_SHORTCUT_SHARE:
            return None
        worst_metric = min(found_shares, key=lambda name: found_shares[name])
        label = _name_class(state, worst_metric)
        rows = [
            {"label": _name_class(state, name), "number": {"value": value}}
            for name, value in state.scores.items()
            if name.startswith(CLASS_METRIC_PREFIX)
        ]
        unit = "of the class's examples"
        return Symptom(
            found_shares[worst_metric],
            f"the focus is right in only {found_shares[worst_metric]:.0%} of the examples of class "
            f"{label}, and {right_by_shortcut:.0%} of all examples are classified right with a "
            "wrong focus",
            figure={"kind": "estimates", "unit": unit, "range": [0, 1], "rows": rows},
        )


def _name_class(state: FocusState, metric: str) -> str:
    """Name of the class that a metric is about; its index if it has none."""
    index = int(metric.removeprefix(CLASS_METRIC_PREFIX))
    return state.classes[index] if index < len(state.classes) else str(index)
