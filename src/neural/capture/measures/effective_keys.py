"""Effective number of attended keys: the perplexity of a row's weights.

A row is the attention weights of one query over the K keys; the value of a head is the mean over
its rows. `reference` defines the value of a row. The compiled pass (compiled_statistics.py) gives
the same value from the numbers that `required_statistics` names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from neural.capture.measure import HeadMeasure
from neural.capture.measures.entropy import entropy_nats

if TYPE_CHECKING:
    from torch import Tensor

    from neural.capture.attention_maps import AttentionMaps


class EffectiveKeys(HeadMeasure):
    """Exponential of the entropy, in keys: 1 is a single key, K is uniform over all.

    The inverse participation ratio 1 / Σ w² is another such number, with other values.
    """

    unit: ClassVar[str] = "keys"
    required_statistics: ClassVar[tuple[str, ...]] = ("entropy",)

    def reference(self, *layers: AttentionMaps) -> Tensor:
        """exp(−Σ w log w)."""
        (layer,) = layers
        return entropy_nats(layer.weights).exp()

    def from_statistics(self, statistics: dict[str, Tensor]) -> Tensor:
        """The same from the row's entropy."""
        return statistics["entropy"].exp()

    def value_range(self, heads: int, keys: int) -> tuple[float, float]:
        """1 to K: from one key to all."""
        return 1, keys
