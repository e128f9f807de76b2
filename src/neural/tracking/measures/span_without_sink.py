"""How far a head looks, the first key left aside: an attention sink is far from most queries, and no long look."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar

from neural.modules.late import torch
from neural.tracking.measure import HeadMeasure

if TYPE_CHECKING:
    from torch import Tensor

    from neural.tracking.maps import Axis, Maps

MIN_MASS = 0.05
"""What must be left of a row without the first key: of less, nobody knows how far it looks."""


class SpanWithoutSink(HeadMeasure):
    """Expected distance between query and key without the first key, in positions: 0 looks at itself, K − 1 far away.

    The weights of the other keys count as shares of their sum. Rows with less than 5 % of their mass there do not
    count. Not defined for cross-attention.
    """

    unit: ClassVar[str] = "positions"
    axis: ClassVar[Axis] = "shared"
    needs: ClassVar[tuple[str, ...]] = ("distance", "first", "from_first")

    def plain(self, *maps: Maps) -> Tensor:
        """Σ wⱼ |i − j| / Σ wⱼ over all keys but the first."""
        (look,) = maps
        keys = torch.arange(look.positions, device=look.at.device)
        others = look.placed.masked_fill((keys == look.origins.unsqueeze(-1)).unsqueeze(1), 0)
        rest = others.sum(dim=-1) + look.extra_mass
        counted = (rest >= MIN_MASS) & (look.visible > 1) & (look.origins >= 0).unsqueeze(1)
        return ((others * look.distance.abs()).sum(dim=-1) / rest).masked_fill(~counted, float("nan"))

    def rows(self, found: dict[str, Tensor]) -> Tensor:
        """The same from the span of the whole row and the first key's share in it."""
        rest = 1 - found["first"]
        span = (found["distance"] - found["first"] * found["from_first"]).clamp(min=0) / rest
        return span.masked_fill(~(rest >= MIN_MASS), float("nan"))

    def bounds(self, heads: int, keys: int) -> tuple[float, float]:
        """0 to ∞: as the span."""
        return 0, math.inf
