"""Whether a head is a previous-token head, half of an induction circuit (Elhage et al., 2021)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from neural.tracking.measure import HeadMeasure

if TYPE_CHECKING:
    from torch import Tensor

    from neural.tracking.maps import Axis, Maps


class PreviousTokenMass(HeadMeasure):
    """Share of the mass on the position before the query: 0 ignores it, 1 looks at nothing else.

    Rows that may not see that position do not count.
    """

    unit: ClassVar[str] = "share"
    axis: ClassVar[Axis] = "shared"
    needs: ClassVar[tuple[str, ...]] = ("previous",)

    def plain(self, *maps: Maps) -> Tensor:
        """wᵢ₋₁: the weight of the position before the query."""
        return maps[0].mass(maps[0].at - 1)

    def bounds(self, heads: int, keys: int) -> tuple[float, float]:
        """0 to 1: a share."""
        return 0, 1
