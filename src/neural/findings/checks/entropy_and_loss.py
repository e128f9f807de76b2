"""Correlation of attention entropy with the validation loss."""

from __future__ import annotations

from typing import ClassVar

from neural.findings.check import LossCorrelationCheck


class EntropyAndLoss(LossCorrelationCheck):
    """Tests whether the validation loss is related to the entropy of the attention weights.

    The entropy is averaged over layers and heads. The number, from −2 to 2, is their correlation
    over training steps, beyond the trend that all seeds share (stats/correlation.py).
    """

    code: ClassVar[str] = "EVO007"
    claim: ClassVar[str] = "attention entropy correlates with validation loss"
    measure_name: ClassVar[str] = "entropy"
