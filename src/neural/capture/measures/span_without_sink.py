"""Expected attention distance without the first key, which may be an attention sink.

A row is the attention weights of one query over the K keys; the value of a head is the mean over
its rows. `reference` defines the value of a row. The compiled pass (compiled_statistics.py) gives
the same value from the numbers that `required_statistics` names. `needs_positions`: the measure
applies only where queries and keys have known positions in one sequence.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar

from neural.capture.measure import HeadMeasure
from neural.nn.lazy_torch import torch

if TYPE_CHECKING:
    from torch import Tensor

    from neural.capture.attention_maps import AttentionMaps, KnownPositions

MIN_REMAINING_MASS = 0.05
"""Rows with less mass than this on other keys do not count: their distance is noise."""


class SpanWithoutSink(HeadMeasure):
    """Expected distance without the first key, in positions: 0 is itself, K − 1 the far end.

    An attention sink (a first key that gets much weight whatever its content) is far from most
    queries, but attention to it is not long-range attention. The weights of the
    other keys are scaled to sum to 1. Rows with less than 5 % of their mass on other keys do not
    count. Not defined for cross-attention.
    """

    unit: ClassVar[str] = "positions"
    needs_positions: ClassVar[KnownPositions] = "queries_and_keys"
    required_statistics: ClassVar[tuple[str, ...]] = ("distance", "first", "from_first")

    def reference(self, *layers: AttentionMaps) -> Tensor:
        """Σ wⱼ |i − j| / Σ wⱼ over all keys j but the first; i is the query's position."""
        (layer,) = layers
        keys = torch.arange(layer.positions, device=layer.query_positions.device)
        is_first = (keys == layer.first_keys.unsqueeze(-1)).unsqueeze(1)
        weights = layer.position_weights.masked_fill(is_first, 0)
        mass = weights.sum(dim=-1) + layer.extra_mass
        has_choice = (layer.visible_count > 1) & (layer.first_keys >= 0).unsqueeze(1)
        is_counted = (mass >= MIN_REMAINING_MASS) & has_choice
        span = (weights * layer.distance.abs()).sum(dim=-1) / mass
        return span.masked_fill(~is_counted, float("nan"))

    def from_statistics(self, statistics: dict[str, Tensor]) -> Tensor:
        """The same from the span of all keys and the first key's weight and distance."""
        first, mass = statistics["first"], 1 - statistics["first"]
        span = (statistics["distance"] - first * statistics["from_first"]).clamp(min=0) / mass
        return span.masked_fill(~(mass >= MIN_REMAINING_MASS), float("nan"))

    def value_range(self, heads: int, keys: int) -> tuple[float, float]:
        """0 to ∞: as `span`."""
        return 0, math.inf
