"""A check of another package: the last accuracy is below one half."""

from __future__ import annotations

from typing import ClassVar

from neural.findings.check import DiagnosticCheck, FindingKind, Symptom


class LowAccuracy(DiagnosticCheck):
    """The last validation accuracy is below one half."""

    code: ClassVar[str] = "PEAK01"
    claim: ClassVar[str] = "the accuracy stayed low"
    unit: ClassVar[str] = "share"
    kind: ClassVar[FindingKind] = "warning"
    advice: ClassVar[str] = "train longer"

    def find_symptom(self, run):
        if "valid/accuracy" not in run.scalar_names():
            return None
        steps, values = run.scalars("valid/accuracy")
        if values[-1] >= 0.5:
            return None
        return Symptom(float(values[-1]), f"accuracy {values[-1]:.2f} at step {steps[-1]:,}")
