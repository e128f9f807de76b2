"""Whether entropy follows the validation loss."""

from __future__ import annotations

from typing import ClassVar

from neural.views.related import RelatedToLoss


class EntropyAndLoss(RelatedToLoss):
    """Correlation of the changes of mean entropy and validation loss, beyond that of different seeds: −1 to 1."""

    code: ClassVar[str] = "EVO007"
    claim: ClassVar[str] = "attention entropy correlates with validation loss"
    measure: ClassVar[str] = "entropy"
