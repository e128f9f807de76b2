"""Base class of checks of focus models, and the scores that these checks read.

A focus model (tasks/focus) gives each of the m segments of an example a weight (together: the
focus) and classifies the segment with the largest; only the foreground segment shows the class. A
paradigm is the loss that trains it; a hybrid paradigm switches from one loss to another during
training.

The scores are of one run, or averaged over runs that differ only by their seed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from neural.findings.check import DiagnosticCheck, Symptom
from neural.findings.checks import registry
from neural.findings.focus_results import FocusGroups, estimate_score, estimate_time_to_reach
from neural.findings.record import Record
from neural.findings.run_loading import MissingDataError

FOCUS_METRIC = "valid/focus_confidence"
"""Metric that only focus models log."""
GOOD_ACCURACY = 0.9
"""Smallest validation accuracy that counts as good."""
HIGH_CONFIDENCE = 0.8
"""Smallest mean of the largest weight from which the focus counts as sure."""
LOW_DETECTION_SHARE = 0.6
"""If the largest weight is on the foreground in a smaller share of examples, the focus is wrong."""


@dataclass(frozen=True, kw_only=True)
class FocusState:
    """Scores of a focus model, for the checks."""

    paradigm: str
    """As in the settings of the run: `soft`, `hybrid(first="lvml")`."""
    classes: Sequence[str]
    """Class names, by class index."""
    scores: Mapping[str, float]
    """Scores by name: those of tasks/focus/metrics.py, and two about hybrid paradigms.

    `switch_share` is the share of the training steps before the switch, NaN if it never came;
    `switch_accuracy_drop` is the validation accuracy lost right after it.
    """

    def get(self, name: str) -> float:
        """A score; NaN where it is unknown."""
        return self.scores.get(name, math.nan)


class FocusCheck(DiagnosticCheck):
    """Base class of checks for problems of the focus that accuracy does not show."""

    needs_training: ClassVar[bool] = True

    @classmethod
    def applies_to(cls, run: Record) -> bool:
        """Only runs of focus models."""
        return FOCUS_METRIC in run.scalar_names()

    def find_focus_symptom(self, state: FocusState) -> Symptom | None:
        """The symptom; None where there is none or scores are missing."""
        raise NotImplementedError

    def find_symptom(self, run: Record) -> Symptom | None:
        """The symptom at the last validation."""
        return self.find_focus_symptom(load_focus_state(run))


def load_focus_state(run: Record) -> FocusState:
    """Scores of a run at its last validation; MissingDataError if it is not of a focus model."""
    names = [name for name in run.scalar_names() if name.startswith("valid/")]
    if FOCUS_METRIC not in names:
        raise MissingDataError(f"{run.name} has no focus: no `{FOCUS_METRIC}` was measured")
    scores = {name.removeprefix("valid/"): float(run.scalars(name)[1][-1]) for name in names}
    steps, accuracy = run.scalars("valid/accuracy")
    # an event is (step, kind, text, time)
    switches = [step for step, kind, _, _ in run.events() if kind == "switch"]
    total_steps = run.metadata("steps") or run.status.step
    if switches or run.status.state == "finished":  # an unfinished run may still switch
        scores["switch_share"] = switches[0] / max(1, total_steps) if switches else math.nan
    if switches:
        before, after = accuracy[steps <= switches[0]], accuracy[steps > switches[0]]
        has_both = len(before) and len(after)
        # the worst of the three validations after the switch: accuracy may recover later
        scores["switch_accuracy_drop"] = (
            float(before[-1] - np.min(after[:3])) if has_both else math.nan
        )
    classes = run.metadata("focus/classes")  # a task of another package may store any type here
    return FocusState(
        paradigm=str(run.settings.get("paradigm", "")),
        classes=classes if isinstance(classes, list) else (),
        scores=scores,
    )


@dataclass(frozen=True)
class FocusWarning:
    """A warning about one paradigm, trained on examples with `segments` segments."""

    code: str
    paradigm: str
    segments: int
    evidence: str
    advice: str

    def __str__(self) -> str:
        return f"{self.code}  {self.paradigm}, m = {self.segments}: {self.evidence} → {self.advice}"


def find_focus_warnings(groups: FocusGroups) -> list[FocusWarning]:
    """Warnings of all focus checks about the mean scores of each group, sorted by code.

    A group has the results of one paradigm and one number of segments m, one per seed.
    """
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
        if "switch_share" in scores:
            # a mean would ignore seeds that never switched; in the median they are the latest
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
