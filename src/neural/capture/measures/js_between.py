"""Jensen–Shannon divergence of two layers' attention (Lin, 1991).

A row is the attention weights of one query over the K keys. p is a row of the first layer and q
that of the same head and query in the second; the value is the mean over rows. `reference` defines
the value of a pair of rows. The compiled pass (compiled_statistics.py) gives the same value from
the numbers that `required_statistics` names.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar

from neural.capture.measure import PairMeasure
from neural.capture.measures.entropy import entropy_nats

if TYPE_CHECKING:
    from torch import Tensor

    from neural.capture.attention_maps import AttentionMaps


class JsBetween(PairMeasure):
    """Jensen–Shannon divergence of two rows, in bits: 0 is equal, 1 shares no key."""

    unit: ClassVar[str] = "bits"
    required_statistics: ClassVar[tuple[str, ...]] = ("js",)

    def reference(self, *layers: AttentionMaps) -> Tensor:
        """(S((p + q) / 2) − (S(p) + S(q)) / 2) / log 2, S(w) = −Σ w log w."""
        first, second = layers
        p, q = first.weights, second.weights
        divergence = entropy_nats((p + q) / 2) - (entropy_nats(p) + entropy_nats(q)) / 2
        return (divergence / math.log(2)).clamp(0, 1)

    def value_range(self, heads: int, keys: int) -> tuple[float, float]:
        """0 to 1: one bit at most."""
        return 0, 1
