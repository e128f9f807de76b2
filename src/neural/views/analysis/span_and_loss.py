"""Claim, docs/claims.md: "attention span correlates with validation loss"."""

from __future__ import annotations

from typing import ClassVar

from neural.views.related import RelatedToLoss


class SpanAndLoss(RelatedToLoss):
    """Correlation of the changes of mean span and validation loss, beyond that of different seeds: −1 to 1."""

    code: ClassVar[str] = "EVO006"
    claim: ClassVar[str] = "attention span correlates with validation loss"
    measure: ClassVar[str] = "span"
