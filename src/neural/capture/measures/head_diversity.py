"""Diversity of a layer's heads: the Jensen–Shannon divergence of all of them (Lin, 1991)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar

from neural.capture.measure import LayerMeasure
from neural.capture.measures.entropy import entropy_nats

if TYPE_CHECKING:
    from torch import Tensor

    from neural.capture.attention_maps import AttentionMaps


class HeadDiversity(LayerMeasure):
    """Entropy of the mean head minus mean entropy, in nats: 0 equal heads, log H disjoint ones."""

    unit: ClassVar[str] = "nats"
    required_statistics: ClassVar[tuple[str, ...]] = ("diversity",)

    def reference(self, *maps: AttentionMaps) -> Tensor:
        """S(mean of the heads) − mean of their S, S(w) = −Σ w log w."""
        weights = maps[0].weights
        return entropy_nats(weights.mean(dim=1)) - entropy_nats(weights).mean(dim=1)

    def value_range(self, heads: int, keys: int) -> tuple[float, float]:
        """0 to log H: at most the log of the heads."""
        return 0, math.log(heads)
