"""Cosine similarity of two layers' attention weights.

A row is the attention weights of one query over the K keys. p is a row of the first layer and q
that of the same head and query in the second; the value is the mean over rows. `reference` defines
the value of a pair of rows. The compiled pass (compiled_statistics.py) gives the same value from
the numbers that `required_statistics` names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from neural.capture.measure import PairMeasure
from neural.nn.lazy_torch import functional

if TYPE_CHECKING:
    from torch import Tensor

    from neural.capture.attention_maps import AttentionMaps


class CosineBetween(PairMeasure):
    """Cosine of two rows, a ratio: 0 shares no key, 1 is equal.

    The rows are those of the same query, and of the heads with equal indices in both layers. Two
    maps that are merely spread out come close to 1: see `centred_cosine_between`.
    """

    unit: ClassVar[str] = "ratio"
    required_statistics: ClassVar[tuple[str, ...]] = ("cosine",)

    def reference(self, *layers: AttentionMaps) -> Tensor:
        """p·q / |p| |q|."""
        first, second = layers
        return functional.cosine_similarity(first.weights, second.weights, dim=-1)

    def value_range(self, heads: int, keys: int) -> tuple[float, float]:
        """0 to 1: weights are never negative."""
        return 0, 1
