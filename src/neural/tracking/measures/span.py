"""How far a head looks: the expected distance (also called the effective attention span)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar

from neural.tracking.measure import HeadMeasure

if TYPE_CHECKING:
    from torch import Tensor

    from neural.tracking.maps import Axis, Maps


class Span(HeadMeasure):
    """Expected distance between query and key, in positions: 0 looks at itself, K − 1 at the far end.

    Keys that are not positions, such as a learned sink, count as distance 0. Not defined for
    cross-attention.
    """

    unit: ClassVar[str] = "positions"
    axis: ClassVar[Axis] = "shared"
    needs: ClassVar[tuple[str, ...]] = ("distance",)

    def plain(self, *maps: Maps) -> Tensor:
        """Σ wⱼ |i − j|."""
        return (maps[0].placed * maps[0].distance.abs()).sum(dim=-1)

    def bounds(self, heads: int, keys: int) -> tuple[float, float]:
        """0 to ∞: queries of another, longer sequence may stand further away than its length."""
        return 0, math.inf
