"""How alike two layers look beyond what any two maps share: causal maps resemble each other by construction."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar

from neural.modules.late import functional
from neural.tracking.measure import PairMeasure

if TYPE_CHECKING:
    from torch import Tensor

    from neural.tracking.maps import Maps

UNIFORM = 1e-5
"""A row that is nearer to the uniform one than this, relative to its length, has no direction left."""


class CentredCosineBetween(PairMeasure):
    """Cosine of two rows with the uniform row removed from both, a ratio: −1 opposite, 0 unrelated, 1 alike.

    Uniform is over the keys that the row may see. A row that is uniform itself has no direction and does not count.
    """

    unit: ClassVar[str] = "ratio"
    needs: ClassVar[tuple[str, ...]] = ("centred",)

    def plain(self, *maps: Maps) -> Tensor:
        """(p − u)·(q − u) / |p − u| |q − u|."""
        one, other = (each.weights - each.kept / each.visible.unsqueeze(-1) for each in maps)
        found = functional.cosine_similarity(one, other, dim=-1, eps=1e-30)
        for rest, each in zip((one, other), maps, strict=True):
            found = found.masked_fill(rest.norm(dim=-1) * each.visible.sqrt() < UNIFORM, math.nan)
        return found

    def bounds(self, heads: int, keys: int) -> tuple[float, float]:
        """−1 to 1: from opposite to alike."""
        return -1, 1
