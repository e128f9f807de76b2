"""Scores of a focus model, of one run or averaged over seeds, and checks of its focus.

A focus model (tasks/focus) gives the m segments of an example weights, its focus, and classifies
the segment in focus; only the foreground segment shows the class. A paradigm is the loss that
trains it; a hybrid paradigm switches from one loss to another during training.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from neural.analysis.check import DiagnosticCheck, Symptom
from neural.analysis.checks import registry
from neural.analysis.focus_results import FocusGroups, estimate_score, estimate_time_to_reach
from neural.analysis.run_loading import MissingDataError
from neural.runs.run import Run

GOOD_ACCURACY, HIGH_CONFIDENCE, LOW_DETECTION_SHARE = 0.9, 0.8, 0.6
"""Thresholds: accuracy, largest weight, and share of examples whose foreground is found."""


@dataclass(frozen=True, kw_only=True)
class FocusState:
    """Scores of a focus model, for the checks."""

    paradigm: str
    """As in the settings."""
    classes: Sequence[str]
    """Class names, by class index."""
    scores: Mapping[str, float]
    """By name, as in tasks/focus/metrics.py.

    `switch_share` is the share of the steps before a switch, NaN if it never switched;
    `switch_accuracy_drop` is the accuracy lost right after it.
    """

    def get(self, name: str) -> float:
        """A score; NaN where it is unknown."""
        return self.scores.get(name, math.nan)


class FocusCheck(DiagnosticCheck):
    """Base class of checks for problems of the focus that accuracy does not show."""

    def find_focus_symptom(self, state: FocusState) -> Symptom | None:
        """The symptom; None where there is none or scores are missing."""
        raise NotImplementedError

    def find_symptom(self, run: Run) -> Symptom | None:
        """The symptom at the last validation."""
        return self.find_focus_symptom(load_focus_state(run))


def load_focus_state(run: Run) -> FocusState:
    """Scores of a run at its last validation; MissingDataError where it has no focus."""
    names = [name for name in run.scalar_names() if name.startswith("valid/")]
    if "valid/focus_confidence" not in names:
        raise MissingDataError(f"{run.name} has no focus: no `valid/focus_confidence` was measured")
    scores = {name.removeprefix("valid/"): float(run.scalars(name)[1][-1]) for name in names}
    steps, accuracy = run.scalars("valid/accuracy")
    switches = [step for step, kind, _, _ in run.events() if kind == "switch"]
    total_steps = run.metadata("steps") or run.status.step
    if switches or run.status.state == "finished":  # an unfinished run may still switch
        scores["switch_share"] = switches[0] / max(1, total_steps) if switches else math.nan
    if switches:
        before, after = accuracy[steps <= switches[0]], accuracy[steps > switches[0]]
        has_both = len(before) and len(after)
        # the worst of the three validations after the switch
        scores["switch_accuracy_drop"] = (
            float(before[-1] - np.min(after[:3])) if has_both else math.nan
        )
    classes = run.metadata("focus/classes")  # of any type in a run of an unknown task
    return FocusState(
        paradigm=str(run.settings.get("paradigm", "")),
        classes=classes if isinstance(classes, list) else (),
        scores=scores,
    )


@dataclass(frozen=True)
class FocusWarning:
    """A warning about one paradigm with m segments."""

    code: str
    paradigm: str
    segments: int
    evidence: str
    advice: str

    def __str__(self) -> str:
        return f"{self.code}  {self.paradigm}, m = {self.segments}: {self.evidence} → {self.advice}"


def find_focus_warnings(groups: FocusGroups) -> list[FocusWarning]:
    """Warnings of all focus checks about each paradigm and m, averaged over seeds, by code."""
    check_types = [registry.get(name) for name in registry.names()]
    checks = [check_type() for check_type in check_types if issubclass(check_type, FocusCheck)]
    warnings: list[FocusWarning] = []
    for (paradigm, m), group in groups.items():
        scores = {
            key: estimate_score(group, key).value
            for key in sorted({key for result in group for key in result.scores})
        }
        if "focus_accuracy" not in scores:
            continue
        if "switch_share" in scores:  # a seed that never switched counts as the latest
            median = estimate_time_to_reach(group, "switch_share").median
            scores["switch_share"] = math.nan if math.isinf(median) else median
        state = FocusState(paradigm=paradigm, classes=group[0].classes, scores=scores)
        seeds = f"over {len(group)} seeds" if len(group) > 1 else "1 seed"
        for check in checks:
            symptom = check.find_focus_symptom(state)
            if symptom is not None:
                evidence = f"{symptom.evidence} ({seeds})"
                warnings.append(FocusWarning(check.code, paradigm, m, evidence, check.advice))
    return sorted(warnings, key=lambda warning: warning.code)
