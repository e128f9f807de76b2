"""Attention to the previous token, half of an induction circuit (Elhage et al., 2021)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from neural.capture.measure import HeadMeasure

if TYPE_CHECKING:
    from torch import Tensor

    from neural.capture.attention_maps import AttentionMaps, Axis


class PreviousTokenMass(HeadMeasure):
    """Share of the mass on the position before the query: 0 is none of it, 1 all of it.

    Rows that may not see that position do not count.
    """

    unit: ClassVar[str] = "share"
    axis: ClassVar[Axis] = "shared"
    required_statistics: ClassVar[tuple[str, ...]] = ("previous",)

    def reference(self, *maps: AttentionMaps) -> Tensor:
        """wᵢ₋₁: the weight of the position before the query."""
        return maps[0].mass_at(maps[0].query_positions - 1)

    def value_range(self, heads: int, keys: int) -> tuple[float, float]:
        """0 to 1: a share."""
        return 0, 1
