"""Expected attention distance without the first key, which may be an attention sink."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar

from neural.capture.measure import HeadMeasure
from neural.nn.lazy_torch import torch

if TYPE_CHECKING:
    from torch import Tensor

    from neural.capture.attention_maps import AttentionMaps, Axis

MIN_REMAINING_MASS = 0.05
"""Rows with less mass than this on other keys do not count: their distance is noise."""


class SpanWithoutSink(HeadMeasure):
    """Expected distance without the first key, in positions: 0 is itself, K − 1 the far end.

    An attention sink is far from most queries, but not long-range attention. The weights of the
    other keys are scaled to sum to 1. Rows with less than 5 % of their mass on other keys do not
    count. Not defined for cross-attention.
    """

    unit: ClassVar[str] = "positions"
    axis: ClassVar[Axis] = "shared"
    required_statistics: ClassVar[tuple[str, ...]] = ("distance", "first", "from_first")

    def reference(self, *maps: AttentionMaps) -> Tensor:
        """Σ wⱼ |i − j| / Σ wⱼ over all keys j but the first; i is the query's position."""
        (own,) = maps
        keys = torch.arange(own.positions, device=own.query_positions.device)
        is_first = (keys == own.origins.unsqueeze(-1)).unsqueeze(1)
        weights = own.position_weights.masked_fill(is_first, 0)
        mass = weights.sum(dim=-1) + own.extra_mass
        has_choice = (own.visible_count > 1) & (own.origins >= 0).unsqueeze(1)
        is_counted = (mass >= MIN_REMAINING_MASS) & has_choice
        span = (weights * own.distance.abs()).sum(dim=-1) / mass
        return span.masked_fill(~is_counted, float("nan"))

    def from_statistics(self, statistics: dict[str, Tensor]) -> Tensor:
        """The same from the span of all keys and the first key's weight and distance."""
        first, mass = statistics["first"], 1 - statistics["first"]
        span = (statistics["distance"] - first * statistics["from_first"]).clamp(min=0) / mass
        return span.masked_fill(~(mass >= MIN_REMAINING_MASS), float("nan"))

    def value_range(self, heads: int, keys: int) -> tuple[float, float]:
        """0 to ∞: as `span`."""
        return 0, math.inf
