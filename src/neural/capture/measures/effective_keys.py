"""Effective number of attended keys: the perplexity of a row's weights."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from neural.capture.measure import HeadMeasure
from neural.capture.measures.entropy import entropy_nats

if TYPE_CHECKING:
    from torch import Tensor

    from neural.capture.attention_maps import AttentionMaps


class EffectiveKeys(HeadMeasure):
    """Exponential of the entropy, in keys: 1 is a single key, K is uniform over all.

    Not the inverse participation ratio.
    """

    unit: ClassVar[str] = "keys"
    required_statistics: ClassVar[tuple[str, ...]] = ("entropy",)

    def reference(self, *maps: AttentionMaps) -> Tensor:
        """exp(−Σ w log w)."""
        return entropy_nats(maps[0].weights).exp()

    def from_statistics(self, statistics: dict[str, Tensor]) -> Tensor:
        """The same from the row's entropy."""
        return statistics["entropy"].exp()

    def value_range(self, heads: int, keys: int) -> tuple[float, float]:
        """1 to K: from one key to all."""
        return 1, keys
