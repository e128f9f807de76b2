"""How spread out a row's weights are, whatever the number of keys: rows of a causal map become comparable."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from neural.tracking.measure import HeadMeasure
from neural.tracking.measures.entropy import nats

if TYPE_CHECKING:
    from torch import Tensor

    from neural.tracking.maps import Maps


class RelativeEntropy(HeadMeasure):
    """Entropy as a share of the largest possible: 0 looks at one key, 1 looks at all that it may see alike.

    The largest possible is the log of the keys that the row may see; a row that sees one key has no choice and does not
    count.
    """

    unit: ClassVar[str] = "share"
    needs: ClassVar[tuple[str, ...]] = ("entropy", "visible")

    def plain(self, *maps: Maps) -> Tensor:
        """−Σ w log w / log V, V the keys that the row may see."""
        return relative(nats(maps[0].weights), maps[0].visible.float())

    def rows(self, found: dict[str, Tensor]) -> Tensor:
        """The same from the row's entropy and its number of keys."""
        return relative(found["entropy"], found["visible"])

    def bounds(self, heads: int, keys: int) -> tuple[float, float]:
        """0 to 1: a share."""
        return 0, 1


def relative(entropy: Tensor, visible: Tensor) -> Tensor:
    """Only rows with a choice."""
    return (entropy / visible.log()).masked_fill(visible <= 1, float("nan"))
