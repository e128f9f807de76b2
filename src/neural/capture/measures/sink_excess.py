"""Attention sink: mass on the first key beyond uniform attention (Xiao et al., 2024).

A row is the attention weights of one query over the K keys; the value of a head is the mean over
its rows. `reference` defines the value of a row. The compiled pass (compiled_statistics.py) gives
the same value from the numbers that `required_statistics` names. `needs_positions`: the measure
applies only where the positions of the keys are known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from neural.capture.measure import HeadMeasure
from neural.capture.measures.first_key_mass import first_key_mass

if TYPE_CHECKING:
    from torch import Tensor

    from neural.capture.attention_maps import AttentionMaps, KnownPositions


class SinkExcess(HeadMeasure):
    """Share of the mass on the first key beyond a uniform row's: 0 or less is no sink, 1 all of it.

    In short sequences uniform attention puts much mass on the first key; this measure gives it 0.
    Rows that may not see the first key count as 0.
    """

    unit: ClassVar[str] = "share"
    needs_positions: ClassVar[KnownPositions] = "keys"
    required_statistics: ClassVar[tuple[str, ...]] = ("first", "visible", "sees_first")

    def reference(self, *layers: AttentionMaps) -> Tensor:
        """(w₁ − 1/V) / (1 − 1/V), w₁ the first key's weight, V the number of visible keys."""
        (layer,) = layers
        sees_first = layer.mass_at(layer.first_keys.unsqueeze(1)).isfinite()
        return excess_over_uniform(first_key_mass(layer), layer.visible_count.float(), sees_first)

    def from_statistics(self, statistics: dict[str, Tensor]) -> Tensor:
        """The same from the row's weight of the first key and its number of keys."""
        return excess_over_uniform(
            statistics["first"], statistics["visible"], statistics["sees_first"] > 0
        )

    def value_range(self, heads: int, keys: int) -> tuple[float, float]:
        """−1 to 1: a row of two keys may avoid the first."""
        return -1, 1


def excess_over_uniform(first: Tensor, visible: Tensor, sees_first: Tensor) -> Tensor:
    """(first − 1/V) / (1 − 1/V), with V = `visible` keys; 0 where the first key is hidden.

    `first` is the weight of the first key, which is 0 there.
    """
    return ((first - 1 / visible) / (1 - 1 / visible)).where(sees_first, first)
