"""Attention to the first key, where an attention sink would be (Xiao et al., 2024)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from neural.capture.measure import HeadMeasure

if TYPE_CHECKING:
    from torch import Tensor

    from neural.capture.attention_maps import AttentionMaps, Axis


class FirstKeyMass(HeadMeasure):
    """Share of the mass on the first key of the sequence: 0 is none of it, 1 all of it.

    With left padding that is the first real token, in packed sequences the first of the segment.
    The edge of a window is not a first key: a row that may not see the first key has 0. Rows that
    see one key do not count. A learned sink is not a position: see `extra_key_mass`.
    """

    unit: ClassVar[str] = "share"
    axis: ClassVar[Axis] = "keys"
    required_statistics: ClassVar[tuple[str, ...]] = ("first",)

    def reference(self, *maps: AttentionMaps) -> Tensor:
        """Weight of the first key; 0 where it is hidden."""
        return first_key_mass(maps[0])

    def value_range(self, heads: int, keys: int) -> tuple[float, float]:
        """0 to 1: a share."""
        return 0, 1


def first_key_mass(maps: AttentionMaps) -> Tensor:
    """Weight of the first key, 0 if hidden; NaN in rows that see one key or have no known first."""
    mass = maps.mass_at(maps.origins.unsqueeze(1)).nan_to_num(0.0)
    known = (maps.visible_count > 1) & (maps.origins >= 0).unsqueeze(1)
    return mass.masked_fill(~known, float("nan"))
