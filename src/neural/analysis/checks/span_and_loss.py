"""Claim (docs/claims.md): "attention span correlates with validation loss"."""

from __future__ import annotations

from typing import ClassVar

from neural.analysis.check import LossCorrelationCheck


class SpanAndLoss(LossCorrelationCheck):
    """Correlation of mean span with validation loss, beyond the shared trend: −1 to 1."""

    code: ClassVar[str] = "EVO006"
    claim: ClassVar[str] = "attention span correlates with validation loss"
    measure_name: ClassVar[str] = "span"
