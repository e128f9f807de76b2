"""Expected attention distance, also called the effective attention span."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar

from neural.capture.measure import HeadMeasure

if TYPE_CHECKING:
    from torch import Tensor

    from neural.capture.attention_maps import AttentionMaps, Axis


class Span(HeadMeasure):
    """Expected distance between query and key, in positions: 0 is itself, K − 1 the far end.

    Keys that are not positions, such as a learned sink, count as distance 0. Not defined for
    cross-attention.
    """

    unit: ClassVar[str] = "positions"
    axis: ClassVar[Axis] = "shared"
    required_statistics: ClassVar[tuple[str, ...]] = ("distance",)

    def reference(self, *maps: AttentionMaps) -> Tensor:
        """Σ wⱼ |i − j|."""
        return (maps[0].position_weights * maps[0].distance.abs()).sum(dim=-1)

    def value_range(self, heads: int, keys: int) -> tuple[float, float]:
        """0 to ∞: with a query offset, queries may be further away than the number of keys."""
        return 0, math.inf
