"""Where a focus model stands, of one run or on average over some, and the questions that are asked about it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from neural.tracking.run import Run
from neural.views.finding import Diagnosis, Symptom
from neural.views.reading import Missing

GOOD, SURE, BLIND = 0.9, 0.8, 0.6
"""An accuracy to be proud of, a weight to be sure of, a share of examples below which something is not found."""


@dataclass(frozen=True, kw_only=True)
class Standing:
    """What is known about a focus model."""

    paradigm: str
    """As it was asked for."""
    classes: Sequence[str]
    scores: Mapping[str, float]
    """By name, as in tasks/focusing/measures.py; `switched` is the share of the steps before a switch, NaN: never, and
    `fell` how much accuracy was lost right after it."""

    def of(self, name: str) -> float:
        """NaN where it is not known."""
        return self.scores.get(name, math.nan)


class FocusDiagnosis(Diagnosis):
    """Base of what may be wrong with a focus that the accuracy does not tell."""

    def trouble(self, stands: Standing) -> Symptom | None:
        """What shows it; None where all is well or nothing is known."""
        raise NotImplementedError

    def symptom(self, run: Run) -> Symptom | None:
        """By the last validation."""
        return self.trouble(standing(run))


def standing(run: Run) -> Standing:
    """Of a run, by its last validation; Missing where it has no focus."""
    names = [name for name in run.names() if name.startswith("valid/")]
    if "valid/focus_confidence" not in names:
        raise Missing(f"{run.name} has no focus: no `valid/focus_confidence` was measured")
    scores = {name.removeprefix("valid/"): float(run.scalars(name)[1][-1]) for name in names}
    steps, accuracy = run.scalars("valid/accuracy")
    switches = [step for step, kind, _, _ in run.events() if kind == "switch"]
    whole = run.described("steps") or run.status.step
    if switches or run.status.state == "finished":   # one that is not over may still switch
        scores["switched"] = switches[0] / max(1, whole) if switches else math.nan
    if switches:
        before, after = accuracy[steps <= switches[0]], accuracy[steps > switches[0]]
        scores["fell"] = float(before[-1] - np.min(after[:3])) if len(before) and len(after) else math.nan
    return Standing(
        paradigm=str(run.settings.get("paradigm", "")), classes=run.described("focus/classes") or (), scores=scores
    )
