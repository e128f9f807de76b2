"""How much a head looks at the token it stands on."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from neural.tracking.measure import HeadMeasure

if TYPE_CHECKING:
    from torch import Tensor

    from neural.tracking.maps import Axis, Maps


class DiagonalMass(HeadMeasure):
    """Share of the mass on the query's own position: 0 ignores it, 1 looks at nothing else.

    Rows that may not see their own position do not count.
    """

    unit: ClassVar[str] = "share"
    axis: ClassVar[Axis] = "shared"
    needs: ClassVar[tuple[str, ...]] = ("diagonal",)

    def plain(self, *maps: Maps) -> Tensor:
        """wᵢ: the weight of the query's own position."""
        return maps[0].mass(maps[0].at)

    def bounds(self, heads: int, keys: int) -> tuple[float, float]:
        """0 to 1: a share."""
        return 0, 1
