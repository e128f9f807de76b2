"""How far a head looks, but for a tail of 10 %: robust against a little mass far away."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar

from neural.modules.late import torch
from neural.tracking.measure import HeadMeasure

if TYPE_CHECKING:
    from torch import Tensor

    from neural.tracking.maps import Axis, Maps

SHARE = 0.9 - 1e-6
"""A little less than 90 %, so that nine of ten equal weights are 90 % in any rounding."""


class Span90(HeadMeasure):
    """Smallest distance within which 90 % of the mass lies, in positions: 0 looks at itself, K − 1 at the far end.

    Keys that are not positions, such as a learned sink, count as distance 0. Not defined for
    cross-attention.
    """

    unit: ClassVar[str] = "positions"
    axis: ClassVar[Axis] = "shared"
    needs: ClassVar[tuple[str, ...]] = ("within",)

    def plain(self, *maps: Maps) -> Tensor:
        """min d with Σ wⱼ over |i − j| ≤ d of at least 0.9: added up from the nearest key to the farthest."""
        away, order = maps[0].distance.abs().sort(dim=-1, stable=True)
        total = maps[0].placed.gather(-1, order.expand_as(maps[0].placed)).cumsum(dim=-1)
        total = total + maps[0].extra_mass.unsqueeze(-1)
        last = (total < SHARE).sum(dim=-1, keepdim=True).clamp(max=total.shape[-1] - 1)
        return torch.gather(away.expand_as(total), -1, last).squeeze(-1)

    def bounds(self, heads: int, keys: int) -> tuple[float, float]:
        """0 to ∞: queries of another, longer sequence may stand further away than its length."""
        return 0, math.inf
