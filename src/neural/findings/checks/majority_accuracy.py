"""Accuracy at the majority share: the model is right no more often than the largest class.

Always predicting the largest class of the validation data is right in its share of the examples
(`data/majority_share`). The accuracy is the mean over the second half of the validations.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from neural.findings.check import DiagnosticCheck, Importance, Symptom
from neural.findings.figure_data import build_curve
from neural.findings.record import Record
from neural.findings.run_loading import MissingDataError, load_scalar_curve

MAJORITY_SHARE_KEY = "data/majority_share"
ROUNDING_TOLERANCE = 1e-6
"""Accuracies are means of 32-bit floats."""


class MajorityAccuracy(DiagnosticCheck):
    """Reports a classifier that is not more accurate than always predicting the largest class.

    The number is the validation accuracy.
    """

    code: ClassVar[str] = "TRN005"
    needs_training: ClassVar[bool] = True
    claim: ClassVar[str] = "the accuracy is not above the share of the largest class"
    unit: ClassVar[str] = "of the examples are classified right"
    importance: ClassVar[Importance] = "high"
    advice: ClassVar[str] = (
        "see which classes are predicted (`neural evaluate`), set `class_weights: balanced`, check "
        "that inputs and targets belong together"
    )

    @classmethod
    def applies_to(cls, run: Record) -> bool:
        """Runs that classify."""
        return run.metadata(MAJORITY_SHARE_KEY) is not None

    def find_symptom(self, run: Record) -> Symptom | None:
        """Compare accuracy and majority share; MissingDataError if the targets are not classes."""
        majority = run.metadata(MAJORITY_SHARE_KEY)
        if not isinstance(majority, float | int):
            raise MissingDataError(f"{run.name} has no `{MAJORITY_SHARE_KEY}`: it has no classes")
        curve = load_scalar_curve(run, "valid/accuracy", "it was never validated")
        values = curve.values[np.isfinite(curve.values)]
        if not len(values):
            return None
        accuracy = float(values[len(values) // 2 :].mean())
        if accuracy > majority + ROUNDING_TOLERANCE:
            return None
        evidence = (
            f"valid/accuracy is {accuracy:.1%}; the largest class is {majority:.1%} of the "
            "validation examples"
        )
        figure = build_curve(["valid/accuracy"], levels=[(majority, "largest class")])
        return Symptom(accuracy, evidence, figure=figure)
