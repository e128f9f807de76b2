"""Largest attention score: grows without bound before a loss diverges (Dehghani et al., 2023)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar

from neural.capture.measure import HeadMeasure
from neural.nn.lazy_torch import torch

if TYPE_CHECKING:
    from torch import Tensor

    from neural.capture.attention_maps import AttentionMaps


class LargestLogit(HeadMeasure):
    """Largest scaled, biased score before the softmax, in nats: 0 is neutral, above 50 a warning.

    The value of a head is the largest of all its rows, not their average: one row is enough to
    diverge.
    """

    unit: ClassVar[str] = "nats"
    required_statistics: ClassVar[tuple[str, ...]] = ("logit",)

    def reference(self, *maps: AttentionMaps) -> Tensor:
        """max (q·k / √D + bias) over the visible keys."""
        assert maps[0].scores is not None
        return maps[0].scores.masked_fill(~maps[0].visible_mask, -math.inf).amax(dim=-1)

    def average_rows(self, rows: Tensor) -> Tensor:
        """The largest of all rows; NaN if no row counts."""
        largest = rows.nan_to_num(nan=-math.inf).amax(dim=(0, -1))
        return torch.where(largest.isinf(), math.nan, largest)

    def value_range(self, heads: int, keys: int) -> tuple[float, float]:
        """−∞ to ∞: unbounded."""
        return -math.inf, math.inf
