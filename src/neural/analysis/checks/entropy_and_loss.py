"""Correlation of attention entropy with the validation loss."""

from __future__ import annotations

from typing import ClassVar

from neural.analysis.check import LossCorrelationCheck


class EntropyAndLoss(LossCorrelationCheck):
    """Correlation of mean entropy with validation loss, beyond the shared trend: −1 to 1."""

    code: ClassVar[str] = "EVO007"
    claim: ClassVar[str] = "attention entropy correlates with validation loss"
    measure_name: ClassVar[str] = "entropy"
