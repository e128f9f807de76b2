"""A training that stood still before its best: how much patience it takes to get there."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from neural.tracking.run import Run
from neural.views.finding import Diagnosis, Kind, Symptom
from neural.views.phases import LEAST
from neural.views.reading import deciding


class Patience(Diagnosis):
    """The most validations without a new best that came before the best one, where they were three or more."""

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
        bests = [0, *(at for at in range(1, len(values)) if values[at] > values[:at].max())]
        waits = np.diff(bests) - 1 if len(bests) > 1 else np.zeros(1, int)
        longest = int(np.argmax(waits))
        if waits[longest] < LEAST:
            return None
        steps, wait = score.curve.steps, int(waits[longest])
        first, again = steps[bests[longest]], steps[bests[longest + 1]]
        said = run.settings.get("training") if isinstance(run.settings.get("training"), dict) else {}
        patience = (said or {}).get("patience")
        had = "no patience is set: it never stops early" if patience is None else f"patience is {patience}"
        stood = f"no new best of {score.name} in {wait} validations after step {first:,}, then one at {again:,}"
        return Symptom(float(wait), f"{stood}; {had}")
