"""Loss above chance: the model is not clearly better than the best constant prediction.

The chance loss is that of the best constant prediction on the validation data: the entropy of the
class shares, or the variance of the values. Tasks save it as `data/chance_loss`. The lowest
validation loss must be below it by 0.5 %, and by more than noise explains: the smallest of n losses
is about √(2 log n) standard deviations below their mean, and one more is allowed. The noise is that
of the curve, from one validation to the next. Whether the loss is below chance, but not by enough,
or at chance, decides what is said and advised.
"""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from neural.findings.check import DiagnosticCheck, Importance, Symptom
from neural.findings.figure_data import build_curve
from neural.findings.record import Record
from neural.findings.run_loading import LOSS_METRIC, MissingDataError, load_scalar_curve
from neural.stats.change_points import estimate_curve_noise
from neural.stats.estimate import format_number

CHANCE_LOSS_KEY = "data/chance_loss"
MIN_RELATIVE_GAIN = 0.005
"""A smaller gain over chance, as a share of the chance loss, counts as none."""
UNCLEAR_GAIN_ADVICE = (
    "train longer, validate on more examples, or try another learning rate: ten times smaller, ten "
    "times larger"
)
"""What to do if the loss is below chance, but not by more than noise."""


class LossAboveChance(DiagnosticCheck):
    """Reports a run whose validation loss never was clearly below the chance loss.

    The number is the lowest validation loss divided by the chance loss.
    """

    code: ClassVar[str] = "TRN004"
    needs_training: ClassVar[bool] = True
    claim: ClassVar[str] = "the validation loss is not clearly below chance"
    unit: ClassVar[str] = "times the chance loss"
    importance: ClassVar[Importance] = "high"
    advice: ClassVar[str] = (
        "check that inputs and targets belong together, try another learning rate (ten times "
        "smaller, ten times larger), train longer"
    )

    @classmethod
    def applies_to(cls, run: Record) -> bool:
        """Runs of tasks that know their chance loss."""
        return run.metadata(CHANCE_LOSS_KEY) is not None

    def find_symptom(self, run: Record) -> Symptom | None:
        """Compare lowest and chance loss; MissingDataError if the task does not save the latter."""
        chance = run.metadata(CHANCE_LOSS_KEY)
        if not isinstance(chance, float | int) or not chance > 0:
            raise MissingDataError(f"{run.name} has no `{CHANCE_LOSS_KEY}`: chance is unknown")
        curve = load_scalar_curve(run, LOSS_METRIC, "it was never validated")
        losses = curve.values[np.isfinite(curve.values)]
        if not len(losses):
            return None
        lowest = float(losses.min())
        gain = chance - lowest
        noise = estimate_curve_noise(losses) * (math.sqrt(2 * math.log(len(losses))) + 1)
        if gain > max(noise, MIN_RELATIVE_GAIN * chance):
            return None
        evidence = (
            f"the lowest {LOSS_METRIC} is {format_number(lowest)}; predicting the same for every "
            f"example gives {format_number(chance)}"
        )
        figure = build_curve([LOSS_METRIC], levels=[(chance, "chance")])
        if gain <= 0:
            return Symptom(lowest / chance, evidence, figure=figure)
        evidence += f"; the difference, {format_number(gain)}, " + (
            f"may be noise: up to {format_number(noise)} can be chance, as much as the loss varies "
            "between validations"
            if gain <= noise
            else f"is at most {100 * MIN_RELATIVE_GAIN:g} % of it"
        )
        return Symptom(lowest / chance, evidence, UNCLEAR_GAIN_ADVICE, figure=figure)
