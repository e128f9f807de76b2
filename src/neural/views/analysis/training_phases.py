"""How the training went, stretch by stretch."""

from __future__ import annotations

from typing import ClassVar

from neural.tracking.run import Run
from neural.views.finding import Diagnosis, Kind, Symptom
from neural.views.phases import phases
from neural.views.reading import deciding, standard_error
from neural.views.seeds import number


class TrainingPhases(Diagnosis):
    """Phases of the score that decides: rapid, steady, plateau or dip, recovery, best, and what came after it.

    The number is where the best score lies, as a share of the training.
    """

    code: ClassVar[str] = "TRN001"
    claim: ClassVar[str] = "the training had phases"
    unit: ClassVar[str] = "of the training at its best"
    kind: ClassVar[Kind] = "note"

    def symptom(self, run: Run) -> Symptom | None:
        """By the validations."""
        score = deciding(run)
        steps = score.curve.steps
        found = phases(
            score.curve.values.tolist(), larger_is_better=score.larger, standard_error=standard_error(run)
        )
        if not found:
            return None
        said = []
        for one in found:
            first, last = steps[one.first - 1], steps[one.last - 1]
            if one.name == "best":
                said.append(f"best at {last:,} ({number(score.curve.values[one.last - 1])})")
            else:
                sign = "+" if one.change > 0 else ""
                said.append(f"{one.name} {first:,}–{last:,} ({sign}{number(one.change)})")
        best = next(one for one in found if one.name == "best")
        return Symptom(float(steps[best.last - 1] / steps[-1]), f"{score.name}, steps: {', '.join(said)}")
