"""Best checkpoint: the model got worse after its best validation.

The score is the monitored metric, which selects the best checkpoint. A difference counts if it
exceeds the noise of the curve (`estimate_noise_threshold` in findings/phases.py), twice the
standard error of a difference of two validations, and 5 % of the improvement up to the best. If
the model overfits (overfitting.py), that is the advice, and this is only an observation. A few
validations do not show their noise: then a best score in the first half is an observation, too.
"""

from __future__ import annotations

from typing import ClassVar

from neural.findings.check import DiagnosticCheck, Importance, Symptom
from neural.findings.checks.overfitting import Overfitting
from neural.findings.figure_data import build_curve
from neural.findings.phases import (
    MIN_RELATIVE_RISE,
    MIN_SCORES_FOR_NOISE,
    estimate_noise_threshold,
)
from neural.findings.record import Record
from neural.findings.run_loading import estimate_loss_change_error, load_monitored_score
from neural.stats.estimate import format_number

MIN_SCORES = 4
"""With fewer validations, a difference between the best and the last says little."""
MIN_FALL_SHARE = 0.05
"""A fall below this share of the improvement (from the first score to the best) does not count."""


class BestCheckpoint(DiagnosticCheck):
    """Reports a run whose last validation is worse than its best one.

    The number is the difference of the two scores as a share of the best score.
    """

    code: ClassVar[str] = "TRN008"
    needs_training: ClassVar[bool] = True
    claim: ClassVar[str] = "validations got worse after the best checkpoint"
    unit: ClassVar[str] = "of the best score"
    importance: ClassVar[Importance] = "medium"
    advice: ClassVar[str] = (
        "use its best checkpoint, as all commands do; `training.patience` ends a training that "
        "gets no better"
    )

    def find_symptom(self, run: Record) -> Symptom | None:
        """Compare the best and the last validation score; None while the training is running."""
        if run.status.state == "running":
            return None
        score = load_monitored_score(run)
        # losses are negated, so that larger is better
        rising = score.curve.values if score.larger_is_better else -score.curve.values
        if len(rising) < MIN_SCORES:
            return None
        peak = int(rising.argmax())
        gain, fall = float(rising[peak] - rising[0]), float(rising[peak] - rising[-1])
        standard_error = estimate_loss_change_error(run)
        best_value = abs(float(rising[peak]))
        noise = max(estimate_noise_threshold(rising, standard_error), 2 * standard_error)
        is_noise_known = len(rising) >= MIN_SCORES_FOR_NOISE or standard_error > 0
        is_early = 2 * (peak + 1) <= len(rising)
        if fall <= max(MIN_FALL_SHARE * gain, MIN_RELATIVE_RISE * best_value):
            return None
        may_be_noise = fall <= noise
        if may_be_noise and (is_noise_known or not is_early):
            return None
        steps, values = score.curve.steps, score.curve.values
        evidence = (
            f"{score.name} is {format_number(float(values[peak]))} at step {steps[peak]:,} and "
            f"{format_number(float(values[-1]))} at the end, step {steps[-1]:,}"
        )
        if may_be_noise:
            evidence += (
                f"; {len(rising)} validations do not show whether that is noise "
                "(`training.validate_every`)"
            )
        importance: Importance = "none" if may_be_noise or _overfits(run) else self.importance
        best_word = "highest" if score.larger_is_better else "lowest"
        side = "below" if score.larger_is_better else "above"
        relative_fall = fall / max(best_value, 1e-12)
        figure = build_curve([score.name], marks=[(steps[peak], best_word), (steps[-1], "last")])
        return Symptom(
            relative_fall,
            evidence,
            importance=importance,
            text=f"{score.name} ended {100 * relative_fall:.0f} % {side} its {best_word}",
            figure=figure,
        )


def _overfits(run: Record) -> bool:
    """Whether the rise of the validation loss is reported as overfitting."""
    return Overfitting.applies_to(run) and Overfitting().find_symptom(run) is not None
