"""Where a head looks on average."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from neural.modules.late import torch
from neural.tracking.measure import HeadMeasure

if TYPE_CHECKING:
    from torch import Tensor

    from neural.tracking.maps import Axis, Maps


class ExpectedPosition(HeadMeasure):
    """Mean position of the keys looked at, in positions: 0 looks at the first key, K − 1 at the last.

    Counted from the first key of the call, padding included. Keys that are not positions, such as a
    learned sink, are left out of the mean.
    """

    unit: ClassVar[str] = "positions"
    axis: ClassVar[Axis] = "keys"
    needs: ClassVar[tuple[str, ...]] = ("position",)

    def plain(self, *maps: Maps) -> Tensor:
        """Σ wⱼ j / Σ wⱼ over the positions j."""
        weights = maps[0].placed
        sums = (weights * torch.arange(weights.shape[-1], device=weights.device)).sum(dim=-1)
        return sums / weights.sum(dim=-1) if maps[0].extra_keys else sums

    def bounds(self, heads: int, keys: int) -> tuple[float, float]:
        """0 to K − 1: the first and the last key."""
        return 0, keys - 1
