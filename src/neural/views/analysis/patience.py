"""A training that stood still before its best: how much patience it takes to get there."""

from __future__ import annotations

from typing import ClassVar

from neural.tracking.run import Run
from neural.views.finding import Diagnosis, Kind, Symptom
from neural.views.phases import longest_wait, resolution
from neural.views.reading import deciding, standard_error


class Patience(Diagnosis):
    """The most validations without a new best before one that stands out of the noise, where there were three."""

    code: ClassVar[str] = "TRN002"
    claim: ClassVar[str] = "the best came after a plateau"
    unit: ClassVar[str] = "validations"
    kind: ClassVar[Kind] = "warning"
    advice: ClassVar[str] = "set `training.patience` above that, or a training like this one stops before its best"

    def symptom(self, run: Run) -> Symptom | None:
        """By the validations, and by the patience that was set."""
        score = deciding(run)
        values = score.curve.values if score.larger else -score.curve.values
        if len(values) < 2:
            return None
        wait = longest_wait(values, resolution(values, standard_error(run)))
        if wait is None:
            return None
        first, again = score.curve.steps[wait.start], score.curve.steps[wait.again]
        said = run.settings.get("training") if isinstance(run.settings.get("training"), dict) else {}
        patience = (said or {}).get("patience")
        had = "no patience is set: it never stops early" if patience is None else f"patience is {patience}"
        stood = f"no new best of {score.name} in {wait.epochs} validations after step {first:,}, then one at {again:,}"
        return Symptom(float(wait.epochs), f"{stood}; {had}")
