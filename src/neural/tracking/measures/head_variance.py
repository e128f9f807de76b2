"""How much the heads of a layer differ: the variance across heads."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from neural.tracking.measure import LayerMeasure

if TYPE_CHECKING:
    from torch import Tensor

    from neural.tracking.maps import Maps


class HeadVariance(LayerMeasure):
    """Variance of a pair's weight across the heads, in squared shares, averaged over the keys that a row may see.

    0: all heads alike; 1/4: half the heads look at this key alone and half not at all. Divided by the number of heads.
    """

    unit: ClassVar[str] = "squared shares"
    needs: ClassVar[tuple[str, ...]] = ("variance",)

    def plain(self, *maps: Maps) -> Tensor:
        """Σⱼ variance of wⱼ across the heads / V, V the keys that any head sees; others are left out."""
        across = maps[0].weights.var(dim=1, correction=0).sum(dim=-1)
        return across / maps[0].kept.any(dim=1).sum(dim=-1)

    def bounds(self, heads: int, keys: int) -> tuple[float, float]:
        """0 to 1 / 4: the variance of a number between 0 and 1."""
        return 0, 0.25
