"""How much a head rests on the first key, the attention sink (Xiao et al., 2024)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from neural.tracking.measure import HeadMeasure

if TYPE_CHECKING:
    from torch import Tensor

    from neural.tracking.maps import Axis, Maps


class FirstKeyMass(HeadMeasure):
    """Share of the mass on the first key that a row may see: 0 ignores it, 1 looks at nothing else.

    With padding on the left and with packed documents that is the first real token; in a window, the window's edge.
    A learned sink is not a position and never the first key: see `extra_key_mass`.
    """

    unit: ClassVar[str] = "share"
    axis: ClassVar[Axis] = "keys"
    needs: ClassVar[tuple[str, ...]] = ("first",)

    def plain(self, *maps: Maps) -> Tensor:
        """wⱼ of the first key that is kept."""
        return maps[0].mass(maps[0].kept.byte().argmax(dim=-1))

    def bounds(self, heads: int, keys: int) -> tuple[float, float]:
        """0 to 1: a share."""
        return 0, 1
