"""Expected attention distance, also called the effective attention span.

A row is the attention weights of one query over the K keys; the value of a head is the mean over
its rows. `reference` defines the value of a row. The compiled pass (compiled_statistics.py) gives
the same value from the numbers that `required_statistics` names. `needs_positions`: the measure
applies only where queries and keys have known positions in one sequence.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar

from neural.capture.measure import HeadMeasure

if TYPE_CHECKING:
    from torch import Tensor

    from neural.capture.attention_maps import AttentionMaps, KnownPositions


class Span(HeadMeasure):
    """Expected distance between query and key, in positions: 0 is itself, K − 1 the far end.

    Keys that are not positions, such as a learned sink, count as distance 0. Not defined for
    cross-attention.
    """

    unit: ClassVar[str] = "positions"
    needs_positions: ClassVar[KnownPositions] = "queries_and_keys"
    required_statistics: ClassVar[tuple[str, ...]] = ("distance",)

    def reference(self, *layers: AttentionMaps) -> Tensor:
        """Σ wⱼ |i − j| over the keys j; i is the query's position."""
        (layer,) = layers
        return (layer.position_weights * layer.distance.abs()).sum(dim=-1)

    def value_range(self, heads: int, keys: int) -> tuple[float, float]:
        """0 to ∞: with a query offset, queries may be further away than the number of keys."""
        return 0, math.inf
