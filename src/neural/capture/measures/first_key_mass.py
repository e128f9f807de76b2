"""Attention to the first key, where an attention sink would be (Xiao et al., 2024).

A row is the attention weights of one query over the K keys; the value of a head is the mean over
its rows. `reference` defines the value of a row. The compiled pass (compiled_statistics.py) gives
the same value from the numbers that `required_statistics` names. `needs_positions`: the measure
applies only where the positions of the keys are known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from neural.capture.measure import HeadMeasure

if TYPE_CHECKING:
    from torch import Tensor

    from neural.capture.attention_maps import AttentionMaps, KnownPositions


class FirstKeyMass(HeadMeasure):
    """Share of the mass on the first key of the sequence: 0 is none of it, 1 all of it.

    With left padding that is the first real token, in packed sequences the first of the segment.
    The edge of a window is not a first key: a row that may not see the first key has 0. Rows that
    see one key do not count. A learned sink is not a position: see `extra_key_mass`.
    """

    unit: ClassVar[str] = "share"
    needs_positions: ClassVar[KnownPositions] = "keys"
    required_statistics: ClassVar[tuple[str, ...]] = ("first",)

    def reference(self, *layers: AttentionMaps) -> Tensor:
        """Weight of the first key; 0 where it is hidden."""
        (layer,) = layers
        return first_key_mass(layer)

    def value_range(self, heads: int, keys: int) -> tuple[float, float]:
        """0 to 1: a share."""
        return 0, 1


def first_key_mass(maps: AttentionMaps) -> Tensor:
    """Weight of the first key, 0 if it is hidden.

    NaN in rows that see a single key, and if the first key is unknown.
    """
    mass = maps.mass_at(maps.first_keys.unsqueeze(1)).nan_to_num(0.0)
    known = (maps.visible_count > 1) & (maps.first_keys >= 0).unsqueeze(1)
    return mass.masked_fill(~known, float("nan"))
