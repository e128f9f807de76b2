"""How wide a region a head looks at, wherever it lies."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from neural.tracking.measure import HeadMeasure

if TYPE_CHECKING:
    from torch import Tensor

    from neural.tracking.maps import Maps


class PositionSpread(HeadMeasure):
    """Standard deviation of the position looked at, in positions: 0 looks at one key, (K − 1) / 2 at both ends."""

    unit: ClassVar[str] = "positions"
    needs: ClassVar[tuple[str, ...]] = ("spread",)

    def plain(self, *maps: Maps) -> Tensor:
        """√ Σ wⱼ (j − m)², m = Σ wⱼ j."""
        weights, away = maps[0].weights, maps[0].distance
        mean = (weights * away).sum(dim=-1, keepdim=True)
        return (weights * (away - mean).square()).sum(dim=-1).sqrt()

    def bounds(self, heads: int, keys: int) -> tuple[float, float]:
        """0 to (K − 1) / 2: half the mass at either end is the widest."""
        return 0, (keys - 1) / 2
