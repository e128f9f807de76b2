"""Claim, docs/claims.md: "cross-layer similarity correlates with validation loss improvements"."""

from __future__ import annotations

from typing import ClassVar

from neural.views.related import RelatedToLoss


class SimilarityAndLoss(RelatedToLoss):
    """Correlation of the changes of the mean divergence of layers and validation loss, beyond different seeds: −1 to 1.

    Divergence is Jensen–Shannon; similarity is the opposite, so its correlation has the other sign.
    """

    code: ClassVar[str] = "EVO008"
    claim: ClassVar[str] = "similarity between layers correlates with validation loss"
    measure: ClassVar[str] = "js_between"
