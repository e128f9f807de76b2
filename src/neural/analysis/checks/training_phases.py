"""Phases of a training, such as "rapid", "plateau" and "recovery" (analysis/phases.py).

They are intervals of the curve of the monitored metric, which selects the best checkpoint.
"""

from __future__ import annotations

from typing import ClassVar

from neural.analysis.check import DiagnosticCheck, FindingKind, Symptom
from neural.analysis.confidence_intervals import format_number
from neural.analysis.phases import find_phases
from neural.analysis.run_loading import estimate_loss_change_error, load_monitored_score
from neural.runs.run import Run


class TrainingPhases(DiagnosticCheck):
    """Reports the phases of the training, with the change of the monitored metric in each.

    The number is the step of the best score as a share of the training.
    """

    code: ClassVar[str] = "TRN001"
    claim: ClassVar[str] = "the training had phases"
    unit: ClassVar[str] = "of the training came before the best score"
    kind: ClassVar[FindingKind] = "note"

    def find_symptom(self, run: Run) -> Symptom | None:
        """Find the phases of the run; None if its scores do not change beyond their noise."""
        score = load_monitored_score(run)
        steps = score.curve.steps
        phases = find_phases(
            score.curve.values.tolist(),
            larger_is_better=score.larger_is_better,
            standard_error=estimate_loss_change_error(run),
        )
        if not phases:
            return None
        descriptions = []
        for phase in phases:
            first, last = steps[phase.first - 1], steps[phase.last - 1]
            if phase.name == "best":
                value = format_number(score.curve.values[phase.last - 1])
                descriptions.append(f"best at {last:,} ({value})")
            else:
                change = ("+" if phase.change > 0 else "") + format_number(phase.change)
                descriptions.append(f"{phase.name} {first:,}–{last:,} ({change})")
        best = next(phase for phase in phases if phase.name == "best")
        return Symptom(
            float(steps[best.last - 1] / steps[-1]),
            f"{score.name}, steps: {', '.join(descriptions)}",
        )
