"""How alike two layers look: the cosine between their weights."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from neural.modules.late import functional
from neural.tracking.measure import PairMeasure

if TYPE_CHECKING:
    from torch import Tensor

    from neural.tracking.maps import Maps


class CosineBetween(PairMeasure):
    """Cosine of two rows, a ratio: 0 share no key, 1 look alike.

    Two maps that are merely spread out come close to 1: see `centred_cosine_between`.
    """

    unit: ClassVar[str] = "ratio"
    needs: ClassVar[tuple[str, ...]] = ("cosine",)

    def plain(self, *maps: Maps) -> Tensor:
        """p·q / |p| |q|."""
        return functional.cosine_similarity(maps[0].weights, maps[1].weights, dim=-1)

    def bounds(self, heads: int, keys: int) -> tuple[float, float]:
        """0 to 1: weights are never negative."""
        return 0, 1
