"""Attention to the previous token, half of an induction circuit (Elhage et al., 2021).

A row is the attention weights of one query over the K keys; the value of a head is the mean over
its rows. `reference` defines the value of a row. The compiled pass (compiled_statistics.py) gives
the same value from the numbers that `required_statistics` names. `needs_positions`: the measure
applies only where queries and keys have known positions in one sequence.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from neural.capture.measure import HeadMeasure

if TYPE_CHECKING:
    from torch import Tensor

    from neural.capture.attention_maps import AttentionMaps, KnownPositions


class PreviousTokenMass(HeadMeasure):
    """Share of the mass on the position before the query: 0 is none of it, 1 all of it.

    Rows that may not see that position do not count.
    """

    unit: ClassVar[str] = "share"
    needs_positions: ClassVar[KnownPositions] = "queries_and_keys"
    required_statistics: ClassVar[tuple[str, ...]] = ("previous",)

    def reference(self, *layers: AttentionMaps) -> Tensor:
        """wᵢ₋₁: the weight of the position before the query."""
        (layer,) = layers
        return layer.mass_at(layer.query_positions - 1)

    def value_range(self, heads: int, keys: int) -> tuple[float, float]:
        """0 to 1: a share."""
        return 0, 1
