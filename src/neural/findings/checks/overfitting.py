"""Overfitting: the validation loss rises while the training loss falls.

Both changes are measured from the validation with the lowest loss to the end. The rise counts if it
exceeds the noise of the curve (`estimate_noise_threshold` in findings/phases.py), twice the
standard error of a difference of two validations, and 2 % of the lowest loss. The fall counts if it
exceeds twice its standard error, from the training losses before both ends.
"""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from neural.findings.check import DiagnosticCheck, Importance, Symptom
from neural.findings.figure_data import build_curve
from neural.findings.phases import estimate_noise_threshold
from neural.findings.record import Record
from neural.findings.run_loading import (
    LOSS_METRIC,
    estimate_loss_change_error,
    load_scalar_curve,
)
from neural.stats.correlation import Curve
from neural.stats.estimate import format_number

MIN_VALIDATIONS = 4
"""With fewer validations, a rise says little."""
MIN_RELATIVE_RISE = 0.02
"""A smaller rise, as a share of the lowest loss, is not worth a warning."""
MIN_TRAINING_LOSSES = 2
"""Training losses before each of the two validations, to estimate their noise."""


class Overfitting(DiagnosticCheck):
    """Reports a run whose validation loss rose while its training loss fell.

    The number is the rise of the validation loss after its lowest value, as a share of that value.
    """

    code: ClassVar[str] = "TRN003"
    needs_training: ClassVar[bool] = True
    claim: ClassVar[str] = "the model overfits"
    unit: ClassVar[str] = "of the lowest validation loss"
    importance: ClassVar[Importance] = "medium"
    advice: ClassVar[str] = (
        "use its best checkpoint, as all commands do; for a better model, more data, a smaller "
        "network, more dropout or weight decay; `training.patience` stops earlier"
    )

    @classmethod
    def applies_to(cls, run: Record) -> bool:
        """Runs with losses of both training and validation."""
        return {LOSS_METRIC, "train/loss"} <= {*run.scalar_names()}

    def find_symptom(self, run: Record) -> Symptom | None:
        """Compare the losses of training and validation since the lowest validation loss."""
        valid = load_scalar_curve(run, LOSS_METRIC, "it was never validated")
        train = load_scalar_curve(run, "train/loss", "no training loss was logged")
        finite = np.isfinite(valid.values)
        steps, losses = valid.steps[finite], valid.values[finite]
        if len(losses) < MIN_VALIDATIONS:
            return None
        lowest = int(losses.argmin())
        rise = float(losses[-1] - losses[lowest])
        standard_error = estimate_loss_change_error(run)
        min_rise = max(
            estimate_noise_threshold(losses, standard_error),
            2 * standard_error,
            MIN_RELATIVE_RISE * abs(float(losses[lowest])),
        )
        if lowest == len(losses) - 1 or rise <= min_rise:
            return None
        fall = _measure_fall(train, steps, lowest)
        if fall is None:
            return None
        evidence = (
            f"{LOSS_METRIC} rises from {format_number(float(losses[lowest]))} at step "
            f"{steps[lowest]:,} to {format_number(float(losses[-1]))} at step {steps[-1]:,}, while "
            f"train/loss falls from {format_number(fall[0])} to {format_number(fall[1])}"
        )
        figure = build_curve([LOSS_METRIC, "train/loss"], marks=[(steps[lowest], "lowest")])
        relative_rise = rise / max(abs(float(losses[lowest])), 1e-12)
        text = f"{LOSS_METRIC} is {100 * relative_rise:.0f} % above its lowest"
        return Symptom(relative_rise, evidence, text=text, figure=figure)


def _measure_fall(train: Curve, steps: np.ndarray, lowest: int) -> tuple[float, float] | None:
    """Mean training losses before the lowest and before the last validation, if they fall.

    Each mean is over as many steps as lie between the two validations, at most.
    """
    distance = int(steps[-1] - steps[lowest])
    means, variances = [], []
    for end in (int(steps[lowest]), int(steps[-1])):
        window = train.values[(train.steps > end - distance) & (train.steps <= end)]
        window = window[np.isfinite(window)]
        if len(window) < MIN_TRAINING_LOSSES:
            return None
        means.append(float(window.mean()))
        variances.append(float(window.var(ddof=1)) / len(window))
    has_fallen = means[0] - means[1] > 2 * math.sqrt(sum(variances))
    return (means[0], means[1]) if has_fallen else None
