"""Whether a head rests on the first key: more than chance puts there (Xiao et al., 2024)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from neural.tracking.measure import HeadMeasure
from neural.tracking.measures.first_key_mass import first_mass

if TYPE_CHECKING:
    from torch import Tensor

    from neural.tracking.maps import Axis, Maps


class SinkExcess(HeadMeasure):
    """Share of the mass on the first key beyond a uniform row's: 0 or less is no sink, 1 looks at nothing else.

    In short texts a head that looks at everything alike has much of its mass on the first key; here it has 0. Rows that
    may not see the first key count as 0.
    """

    unit: ClassVar[str] = "share"
    axis: ClassVar[Axis] = "keys"
    needs: ClassVar[tuple[str, ...]] = ("first", "visible", "sees_first")

    def plain(self, *maps: Maps) -> Tensor:
        """(w₁ − 1/V) / (1 − 1/V), V the keys that the row may see."""
        (look,) = maps
        sees_first = look.mass(look.origins.unsqueeze(1)).isfinite()
        return excess(first_mass(look), look.visible.float(), sees_first)

    def rows(self, found: dict[str, Tensor]) -> Tensor:
        """The same from the row's weight of the first key and its number of keys."""
        return excess(found["first"], found["visible"], found["sees_first"] > 0)

    def bounds(self, heads: int, keys: int) -> tuple[float, float]:
        """−1 to 1: a row of two keys may avoid the first."""
        return -1, 1


def excess(first: Tensor, visible: Tensor, sees_first: Tensor) -> Tensor:
    """0 where the first key is hidden."""
    return ((first - 1 / visible) / (1 - 1 / visible)).where(sees_first, first)
