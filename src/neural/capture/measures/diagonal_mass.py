"""Attention of a query to its own position."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from neural.capture.measure import HeadMeasure

if TYPE_CHECKING:
    from torch import Tensor

    from neural.capture.attention_maps import AttentionMaps, Axis


class DiagonalMass(HeadMeasure):
    """Share of the mass on the query's own position: 0 is none of it, 1 all of it.

    Rows that may not see their own position do not count.
    """

    unit: ClassVar[str] = "share"
    axis: ClassVar[Axis] = "shared"
    required_statistics: ClassVar[tuple[str, ...]] = ("diagonal",)

    def reference(self, *maps: AttentionMaps) -> Tensor:
        """wᵢ: the weight of the query's own position."""
        return maps[0].mass_at(maps[0].query_positions)

    def value_range(self, heads: int, keys: int) -> tuple[float, float]:
        """0 to 1: a share."""
        return 0, 1
