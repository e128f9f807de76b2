"""How wide a region a head looks at, wherever it lies."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from neural.modules.late import torch
from neural.tracking.measure import HeadMeasure

if TYPE_CHECKING:
    from torch import Tensor

    from neural.tracking.maps import Axis, Maps


class PositionSpread(HeadMeasure):
    """Standard deviation of the position looked at, in positions: 0 looks at one key, (K − 1) / 2 at both ends.

    Keys that are not positions, such as a learned sink, are left out.
    """

    unit: ClassVar[str] = "positions"
    axis: ClassVar[Axis] = "keys"
    needs: ClassVar[tuple[str, ...]] = ("spread",)

    def plain(self, *maps: Maps) -> Tensor:
        """√ Σ wⱼ (j − m)², m = Σ wⱼ j, the weights of the positions j scaled to sum to 1."""
        weights = maps[0].placed
        weights = weights / weights.sum(dim=-1, keepdim=True) if maps[0].extra_keys else weights
        # counted from the middle of the row: small numbers lose fewer digits
        position = torch.arange(weights.shape[-1], device=weights.device) - weights.shape[-1] // 2
        mean = (weights * position).sum(dim=-1, keepdim=True)
        return (weights * (position - mean).square()).sum(dim=-1).sqrt()

    def bounds(self, heads: int, keys: int) -> tuple[float, float]:
        """0 to (K − 1) / 2: half the mass at either end is the widest."""
        return 0, (keys - 1) / 2
