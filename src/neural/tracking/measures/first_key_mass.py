"""How much a head looks at the first key of its text, where an attention sink would be (Xiao et al., 2024)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from neural.tracking.measure import HeadMeasure

if TYPE_CHECKING:
    from torch import Tensor

    from neural.tracking.maps import Axis, Maps


class FirstKeyMass(HeadMeasure):
    """Share of the mass on the first key of the text: 0 ignores it, 1 looks at nothing else.

    With padding on the left that is the first real token, in packed documents the document's first. The edge of a
    window is not one: a row that may not see the first key has no mass there. Rows that see one key do not count.
    A learned sink is not a position and never the first key: see `extra_key_mass`.
    """

    unit: ClassVar[str] = "share"
    axis: ClassVar[Axis] = "keys"
    needs: ClassVar[tuple[str, ...]] = ("first",)

    def plain(self, *maps: Maps) -> Tensor:
        """wⱼ of the first key; 0 where it is hidden."""
        return first_mass(maps[0])

    def bounds(self, heads: int, keys: int) -> tuple[float, float]:
        """0 to 1: a share."""
        return 0, 1


def first_mass(maps: Maps) -> Tensor:
    """The weight of the first key in every row with a choice."""
    mass = maps.mass(maps.origins.unsqueeze(1)).nan_to_num(0.0)
    known = (maps.visible > 1) & (maps.origins >= 0).unsqueeze(1)
    return mass.masked_fill(~known, float("nan"))
