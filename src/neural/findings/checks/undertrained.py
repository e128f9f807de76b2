"""Undertrained: the validation loss still fell when the training ended.

The fall is the slope of a straight line through the validations of the last quarter of the steps.
It counts if it exceeds its standard error, which comes from the noise of the curve
(stats/change_points.py) and from the standard error of the validation loss.
"""

from __future__ import annotations

import math
from typing import ClassVar, NamedTuple

import numpy as np

from neural.findings.check import DiagnosticCheck, Importance, Symptom
from neural.findings.figure_data import build_curve
from neural.findings.phases import MIN_SCORES_FOR_NOISE
from neural.findings.record import Record
from neural.findings.run_loading import LOSS_METRIC, estimate_loss_change_error, load_loss_curve
from neural.stats.change_points import estimate_curve_noise
from neural.stats.estimate import format_number

LAST_SHARE = 0.25
"""Share of the steps, at the end, in which the loss must still fall."""
MIN_STANDARD_ERRORS = 2.5
"""The fall must be this many times its standard error."""
MIN_FALL_SHARE = 0.03
"""A fall below this share of the fall since the first validation is not worth a longer training."""


class LateFall(NamedTuple):
    """Fall of a loss in the last quarter of the steps."""

    size: float
    standard_error: float
    share: float
    """`size` as a share of the fall from the first validation to the best."""
    since: int
    """Step of the first validation."""
    first_step: int
    last_step: int


class Undertrained(DiagnosticCheck):
    """Reports a run whose validation loss still fell in the last quarter of its steps.

    The number is the share of the fall since the first validation that came in that quarter. It is
    reported if it is at least 3 %, exceeds 2.5 standard errors, and the best validation is among the last ones.
    """

    code: ClassVar[str] = "TRN007"
    needs_training: ClassVar[bool] = True
    claim: ClassVar[str] = "validation loss still falls at the end"
    unit: ClassVar[str] = "of the fall since the first validation"
    importance: ClassVar[Importance] = "medium"
    advice: ClassVar[str] = "train longer: set `training.steps`"

    def find_symptom(self, run: Record) -> Symptom | None:
        """Measure the fall of the loss at the end; None while the training is running."""
        if run.status.state == "running":
            return None
        curve = load_loss_curve(run)
        finite = np.isfinite(curve.values)
        fall = measure_late_fall(
            curve.steps[finite], curve.values[finite], estimate_loss_change_error(run)
        )
        if fall is None:
            return None
        evidence = (
            f"{LOSS_METRIC} fell by {format_number(fall.size)} ± "
            f"{format_number(fall.standard_error)} in the last quarter of the training (steps "
            f"{fall.first_step:,} to {fall.last_step:,}), {fall.share:.0%} of its fall since step "
            f"{fall.since:,}"
        )
        interval = (fall.first_step, fall.last_step, "last quarter")
        return Symptom(
            fall.share,
            evidence,
            _suggest_length(run, fall.last_step),
            text=f"{100 * fall.share:.0f} % of the fall since step {fall.since:,} came in the last "
            "quarter",
            figure=build_curve([LOSS_METRIC], interval=interval),
        )


def measure_late_fall(
    steps: np.ndarray, losses: np.ndarray, standard_error: float = 0.0
) -> LateFall | None:
    """The fall in the last quarter of the steps; None if noise explains it or it is small.

    `standard_error` is that of the difference of two validation losses; 0 if unknown. Then at
    least MIN_SCORES_FOR_NOISE validations are needed: fewer do not show their noise.
    """
    count = len(losses)
    if count < (4 if standard_error > 0 else MIN_SCORES_FOR_NOISE):
        return None
    is_late = steps >= (1 - LAST_SHARE) * steps[-1]
    late_steps, late_losses = steps[is_late], losses[is_late]
    whole_fall = float(losses[0] - losses.min())
    # the last third of the late validations: a loss that fell and then levelled off is done
    tail = max(1, math.ceil(len(late_losses) / 3))
    if len(late_losses) < 2 or whole_fall <= 0 or losses.argmin() < count - tail:
        return None
    centred = late_steps - late_steps.mean()
    duration = float(late_steps[-1] - late_steps[0])
    size = -float((centred * late_losses).sum() / (centred**2).sum()) * duration
    # 1 + 5/n: the noise itself is estimated, from n validations
    noise = estimate_curve_noise(losses) * (1 + 5 / count)
    if count < MIN_SCORES_FOR_NOISE:
        noise = 0.0  # the standard error alone
    noise_error = noise * duration / math.sqrt(float((centred**2).sum()))
    total_error = math.hypot(noise_error, standard_error)
    share = size / whole_fall
    if size <= MIN_STANDARD_ERRORS * total_error or share < MIN_FALL_SHARE:
        return None
    return LateFall(size, total_error, share, *map(int, (steps[0], late_steps[0], steps[-1])))


def _suggest_length(run: Record, last_step: int) -> str:
    """The setting that doubles the training; for a stopped one, the command that resumes it."""
    planned = run.metadata("steps")
    if run.status.state not in ("finished", "running") and planned and last_step < planned:
        return f"resume it: `neural train --resume {run.name}`"
    training = run.settings.get("training")
    epochs = training.get("epochs") if isinstance(training, dict) else None
    if epochs:
        return f"train twice as long: `--set training.epochs={2 * epochs:g}`"
    return f"train twice as long: `--set training.steps={2 * (planned or last_step)}`"
