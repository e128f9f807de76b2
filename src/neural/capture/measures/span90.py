"""Attention distance without the farthest 10 % of the mass: robust against outliers.

A row is the attention weights of one query over the K keys; the value of a head is the mean over
its rows. `reference` defines the value of a row. The compiled pass (compiled_statistics.py) gives
the same value from the numbers that `required_statistics` names. `needs_positions`: the measure
applies only where queries and keys have known positions in one sequence.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar

from neural.capture.measure import HeadMeasure
from neural.nn.lazy_torch import torch

if TYPE_CHECKING:
    from torch import Tensor

    from neural.capture.attention_maps import AttentionMaps, KnownPositions

MASS_SHARE = 0.9 - 1e-6
"""Slightly below 90 %, so that nine of ten equal weights reach it whatever the rounding."""


class Span90(HeadMeasure):
    """Smallest distance that contains 90 % of the mass, in positions: 0 itself, K − 1 the far end.

    Keys that are not positions, such as a learned sink, count as distance 0. Not defined for
    cross-attention.
    """

    unit: ClassVar[str] = "positions"
    needs_positions: ClassVar[KnownPositions] = "queries_and_keys"
    required_statistics: ClassVar[tuple[str, ...]] = ("within",)

    def reference(self, *layers: AttentionMaps) -> Tensor:
        """Smallest d for which the weights of keys within distance d of the query sum to 0.9."""
        (layer,) = layers
        distance, order = layer.distance.abs().sort(dim=-1, stable=True)
        weights = layer.position_weights.gather(-1, order.expand_as(layer.position_weights))
        mass_within = weights.cumsum(dim=-1) + layer.extra_mass.unsqueeze(-1)
        reached_index = (
            (mass_within < MASS_SHARE)
            .sum(dim=-1, keepdim=True)
            .clamp(max=mass_within.shape[-1] - 1)
        )
        return torch.gather(distance.expand_as(mass_within), -1, reached_index).squeeze(-1)

    def value_range(self, heads: int, keys: int) -> tuple[float, float]:
        """0 to ∞: with a query offset, queries may be further away than the number of keys."""
        return 0, math.inf
