"""Plateau before the best score: the patience that early stopping needs.

A plateau is an interval of validations without a new best score, followed by a rise that noise does
not explain (findings/phases.py). The score is the metric that selects the best checkpoint. Patience
is the number of validations without a new best score after which early stopping ends a training.
"""

from __future__ import annotations

from typing import ClassVar

from neural.findings.check import DiagnosticCheck, FindingKind, Symptom
from neural.findings.figure_data import build_curve
from neural.findings.phases import estimate_noise_threshold, find_longest_plateau
from neural.findings.record import Record
from neural.findings.run_loading import estimate_loss_change_error, load_monitored_score


class Patience(DiagnosticCheck):
    """Reports the longest plateau before the best score. The number is its length, in validations.

    Fewer than three validations are no plateau.
    """

    code: ClassVar[str] = "TRN002"
    needs_training: ClassVar[bool] = True
    claim: ClassVar[str] = "the best came after a plateau"
    unit: ClassVar[str] = "validations"
    kind: ClassVar[FindingKind] = "warning"
    advice: ClassVar[str] = (
        "set `training.patience` above that, or such a training stops before its best"
    )

    def find_symptom(self, run: Record) -> Symptom | None:
        """Find the longest plateau of the validation scores; the evidence quotes the patience."""
        score = load_monitored_score(run)
        # losses are negated, so that larger is better
        values = score.curve.values if score.larger_is_better else -score.curve.values
        if len(values) < 2:
            return None
        plateau = find_longest_plateau(
            values, estimate_noise_threshold(values, estimate_loss_change_error(run))
        )
        if plateau is None:
            return None
        start, end = score.curve.steps[plateau.start], score.curve.steps[plateau.end]
        training = run.settings.get("training")
        patience = training.get("patience") if isinstance(training, dict) else None
        setting = (
            "no patience is set: it never stops early"
            if patience is None
            else f"patience is {patience}"
        )
        evidence = (
            f"no new best of {score.name} in {plateau.validations} validations after step "
            f"{start:,}, then one at {end:,}; {setting}"
        )
        figure = build_curve([score.name], interval=(start, end, "no new best"))
        return Symptom(float(plateau.validations), evidence, figure=figure)
