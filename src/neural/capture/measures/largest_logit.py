"""Largest attention score: grows without bound before a loss diverges (Dehghani et al., 2023).

A row is the attention of one query to all K keys. `reference` defines the value of a row. The
compiled pass (compiled_statistics.py) gives the same value from the numbers that
`required_statistics` names.
"""

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

    def reference(self, *layers: AttentionMaps) -> Tensor:
        """max (q·k / √D + bias) over the visible keys."""
        (layer,) = layers
        assert layer.scores is not None
        return layer.scores.masked_fill(~layer.visible_mask, -math.inf).amax(dim=-1)

    def aggregate_rows(self, rows: Tensor) -> Tensor:
        """The value of a head: the largest of all its rows; NaN if no row counts (all are NaN)."""
        largest = rows.nan_to_num(nan=-math.inf).amax(dim=(0, -1))
        return torch.where(largest.isinf(), math.nan, largest)

    def value_range(self, heads: int, keys: int) -> tuple[float, float]:
        """−∞ to ∞: unbounded."""
        return -math.inf, math.inf
