"""Claim (docs/claims.md): "cross-layer similarity correlates with validation loss"."""

from __future__ import annotations

from typing import ClassVar

from neural.findings.check import LossCorrelationCheck


class SimilarityAndLoss(LossCorrelationCheck):
    """Tests whether the validation loss is related to the divergence between layers.

    It is the Jensen–Shannon divergence of the attention of two layers, averaged over all pairs of
    layers. The number, from −2 to 2, is the correlation of loss and divergence over training steps,
    beyond the trend that all seeds share (stats/correlation.py). More divergence is less
    similarity, so the correlation of the loss with the similarity has the opposite sign.
    """

    code: ClassVar[str] = "EVO008"
    min_layers: ClassVar[int] = 2
    claim: ClassVar[str] = "similarity between layers correlates with validation loss"
    measure_name: ClassVar[str] = "js_between"
