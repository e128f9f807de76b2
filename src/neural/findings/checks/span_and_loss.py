"""Claim (docs/claims.md): "attention span correlates with validation loss"."""

from __future__ import annotations

from typing import ClassVar

from neural.findings.check import LossCorrelationCheck


class SpanAndLoss(LossCorrelationCheck):
    """Tests whether the validation loss is related to the span of the heads.

    The span of a head is its mean distance between query and key, weighted by attention; it is
    averaged over heads. The number, from −2 to 2, is the correlation of loss and span over training
    steps, beyond the trend that all seeds share (stats/correlation.py).
    """

    code: ClassVar[str] = "EVO006"
    claim: ClassVar[str] = "attention span correlates with validation loss"
    measure_name: ClassVar[str] = "span"
