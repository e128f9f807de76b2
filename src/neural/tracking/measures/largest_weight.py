"""How sure a head is of its favourite key."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from neural.tracking.measure import HeadMeasure

if TYPE_CHECKING:
    from torch import Tensor

    from neural.tracking.maps import Maps


class LargestWeight(HeadMeasure):
    """Largest weight of a row, as a share of the mass: 1 / K looks at all keys alike, 1 looks at one."""

    unit: ClassVar[str] = "share"
    needs: ClassVar[tuple[str, ...]] = ("largest",)

    def plain(self, *maps: Maps) -> Tensor:
        """max wⱼ."""
        return maps[0].weights.amax(dim=-1)

    def bounds(self, heads: int, keys: int) -> tuple[float, float]:
        """1 / K to 1: all alike, or one."""
        return 1 / keys, 1
