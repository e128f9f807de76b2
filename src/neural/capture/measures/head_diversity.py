"""Diversity of a layer's heads: the Jensen–Shannon divergence of all of them (Lin, 1991).

A row is the attention weights of one query over the K keys, in all heads of a layer; the value of
the layer is the mean over its rows. `reference` defines the value of a row. The compiled pass
(compiled_statistics.py) gives the same value from the numbers that `required_statistics` names.
"""

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

    def reference(self, *layers: AttentionMaps) -> Tensor:
        """S(mean of the heads) − mean of their S, S(w) = −Σ w log w."""
        (layer,) = layers
        weights = layer.weights
        return entropy_nats(weights.mean(dim=1)) - entropy_nats(weights).mean(dim=1)

    def value_range(self, heads: int, keys: int) -> tuple[float, float]:
        """0 to log H: at most the log of the heads."""
        return 0, math.log(heads)
