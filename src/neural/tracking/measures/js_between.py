"""How differently two layers look, as a distance that has an upper end (Lin, 1991)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar

from neural.tracking.measure import PairMeasure
from neural.tracking.measures.entropy import nats

if TYPE_CHECKING:
    from torch import Tensor

    from neural.tracking.maps import Maps


class JsBetween(PairMeasure):
    """Jensen–Shannon divergence of two rows, in bits: 0 look alike, 1 share no key."""

    unit: ClassVar[str] = "bits"
    needs: ClassVar[tuple[str, ...]] = ("js",)

    def plain(self, *maps: Maps) -> Tensor:
        """(S((p + q) / 2) − (S(p) + S(q)) / 2) / log 2, S(w) = −Σ w log w."""
        one, other = maps[0].weights, maps[1].weights
        return ((nats((one + other) / 2) - (nats(one) + nats(other)) / 2) / math.log(2)).clamp(0, 1)

    def bounds(self, heads: int, keys: int) -> tuple[float, float]:
        """0 to 1: by its base."""
        return 0, 1
