"""Phases of a training, such as "rapid", "plateau" and "recovery" (findings/phases.py).

They are intervals of the curve of the monitored metric, which selects the best checkpoint.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from neural.findings.check import DiagnosticCheck, FigureData, Finding, FindingKind, Symptom
from neural.findings.phases import find_phases, name_phase
from neural.findings.record import Record
from neural.findings.run_loading import (
    estimate_loss_change_error,
    get_seed,
    load_monitored_score,
)
from neural.stats.estimate import format_number


class TrainingPhases(DiagnosticCheck):
    """Reports the phases of the training, with the change of the monitored metric in each.

    The number is the step of the best score as a share of the training.
    """

    code: ClassVar[str] = "TRN001"
    needs_training: ClassVar[bool] = True
    claim: ClassVar[str] = "the training had phases"
    unit: ClassVar[str] = "of the training came before the best score"
    kind: ClassVar[FindingKind] = "note"

    def find_symptom(self, run: Record) -> Symptom | None:
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
        descriptions, bands, text = [], [], ""
        for phase in phases:
            first, last = int(steps[phase.first - 1]), int(steps[phase.last - 1])
            name = name_phase(phase.name, larger_is_better=score.larger_is_better)
            bands.append({"name": phase.name, "label": name, "first": first, "last": last})
            if phase.name == "best":
                value = format_number(score.curve.values[phase.last - 1])
                descriptions.append(f"{name} at {last:,} ({value})")
                text = f"{name} {score.name} {value} at step {last:,} of {steps[-1]:,}"
            else:
                change = ("+" if phase.change > 0 else "") + format_number(phase.change)
                descriptions.append(f"{name} {first:,}–{last:,} ({change})")
        best = next(phase for phase in phases if phase.name == "best")
        return Symptom(
            float(steps[best.last - 1] / steps[-1]),
            f"{score.name}, steps: {', '.join(descriptions)}",
            text=text,
            figure={"kind": "phases", "metric": score.name, "bands": bands},
        )

    def build_figure(self, finding: Finding, runs: Sequence[Record]) -> FigureData | None:
        """The curves of all runs that have phases, and a row of bands for each."""
        figures = [(run, symptom.figure) for run, symptom in finding.symptoms if symptom.figure]
        if not figures:
            return None
        return {
            "kind": "phases",
            "metric": figures[0][1]["metric"],
            "rows": [
                {"run": run, "seed": get_seed(run), "bands": figure["bands"]}
                for run, figure in figures
            ],
        }
