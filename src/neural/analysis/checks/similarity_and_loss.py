"""Claim (docs/claims.md): "cross-layer similarity correlates with validation loss"."""

from __future__ import annotations

from typing import ClassVar

from neural.analysis.check import LossCorrelationCheck


class SimilarityAndLoss(LossCorrelationCheck):
    """Correlation of layer divergence with validation loss, beyond the shared trend: −1 to 1.

    Divergence is Jensen–Shannon; similarity is its opposite, so its correlation has the other sign.
    """

    code: ClassVar[str] = "EVO008"
    claim: ClassVar[str] = "similarity between layers correlates with validation loss"
    measure_name: ClassVar[str] = "js_between"
