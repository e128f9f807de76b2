"""How many keys a row looks at, were it to look at them alike: the perplexity of its weights."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from neural.tracking.measure import HeadMeasure
from neural.tracking.measures.entropy import nats

if TYPE_CHECKING:
    from torch import Tensor

    from neural.tracking.maps import Maps


class EffectiveKeys(HeadMeasure):
    """Exponential of the entropy (not the inverse participation ratio), in keys: 1 looks at one key, K at all alike."""

    unit: ClassVar[str] = "keys"
    needs: ClassVar[tuple[str, ...]] = ("entropy",)

    def plain(self, *maps: Maps) -> Tensor:
        """exp(−Σ w log w)."""
        return nats(maps[0].weights).exp()

    def rows(self, found: dict[str, Tensor]) -> Tensor:
        """The same from the row's entropy."""
        return found["entropy"].exp()

    def bounds(self, heads: int, keys: int) -> tuple[float, float]:
        """1 to K: from one key to all."""
        return 1, keys
