"""Largest attention weight of a row.

A row is the attention weights of one query over the K keys; the value of a head is the mean over
its rows. `reference` defines the value of a row. The compiled pass (compiled_statistics.py) gives
the same value from the numbers that `required_statistics` names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from neural.capture.measure import HeadMeasure

if TYPE_CHECKING:
    from torch import Tensor

    from neural.capture.attention_maps import AttentionMaps


class LargestWeight(HeadMeasure):
    """Largest weight of a row, as a share of the mass: 1 / K is uniform, 1 is a single key."""

    unit: ClassVar[str] = "share"
    required_statistics: ClassVar[tuple[str, ...]] = ("largest",)

    def reference(self, *layers: AttentionMaps) -> Tensor:
        """max wⱼ."""
        (layer,) = layers
        return layer.weights.amax(dim=-1)

    def value_range(self, heads: int, keys: int) -> tuple[float, float]:
        """1 / K to 1: uniform, or a single key."""
        return 1 / keys, 1
