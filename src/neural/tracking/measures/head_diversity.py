"""Whether the heads of a layer look at different things: the Jensen–Shannon divergence of all of them (Lin, 1991)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar

from neural.tracking.measure import LayerMeasure
from neural.tracking.measures.entropy import nats

if TYPE_CHECKING:
    from torch import Tensor

    from neural.tracking.maps import Maps


class HeadDiversity(LayerMeasure):
    """Entropy of the mean head minus the mean entropy, in nats: 0 all heads alike, log H no two share a key."""

    unit: ClassVar[str] = "nats"
    needs: ClassVar[tuple[str, ...]] = ("diversity",)

    def plain(self, *maps: Maps) -> Tensor:
        """S(mean of the heads) − mean of their S, S(w) = −Σ w log w."""
        weights = maps[0].weights
        return nats(weights.mean(dim=1)) - nats(weights).mean(dim=1)

    def bounds(self, heads: int, keys: int) -> tuple[float, float]:
        """0 to log H: at most the log of the heads."""
        return 0, math.log(heads)
