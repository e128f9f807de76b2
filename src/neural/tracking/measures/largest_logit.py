"""Whether the scores run away: before a loss diverges, logits grow without bound (Dehghani et al., 2023)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar

from neural.modules.late import torch
from neural.tracking.measure import HeadMeasure

if TYPE_CHECKING:
    from torch import Tensor

    from neural.tracking.maps import Maps


class LargestLogit(HeadMeasure):
    """Largest score before the softmax, scaled and with its bias, in nats: 0 is no preference; above 50 is trouble.

    The value of a head is the largest of all its rows, not their average: one row is enough to diverge.
    """

    unit: ClassVar[str] = "nats"
    needs: ClassVar[tuple[str, ...]] = ("logit",)

    def plain(self, *maps: Maps) -> Tensor:
        """max (q·k / √D + bias) over the visible keys."""
        assert maps[0].scores is not None
        return maps[0].scores.masked_fill(~maps[0].kept, -math.inf).amax(dim=-1)

    def average(self, rows: Tensor) -> Tensor:
        """The largest of all rows; NaN where no row counts."""
        found = rows.nan_to_num(nan=-math.inf).amax(dim=(0, -1))
        return torch.where(found.isinf(), math.nan, found)

    def bounds(self, heads: int, keys: int) -> tuple[float, float]:
        """−∞ to ∞: none."""
        return -math.inf, math.inf
