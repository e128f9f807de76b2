"""Claim, docs/claims.md: "higher quality generations correlate with balanced attention entropy"."""

from __future__ import annotations

from typing import ClassVar

from neural.tracking.run import Run
from neural.views.correlation import Curve
from neural.views.reading import mean, measure, scalar_curve
from neural.views.related import Related

QUALITY = "generation/bits"


class BalancedEntropy(Related):
    """Correlation of the changes of balance and of bits per generated character, beyond different seeds: −1 to 1.

    Balance of a head is 1 where its entropy is half of the largest possible, and 0 at both ends; the mean of all heads
    counts. Fewer bits are better text (`generation/bits`), so the claim wants a negative number.
    """

    code: ClassVar[str] = "EVO009"
    claim: ClassVar[str] = "balanced entropy goes with better generated text"
    sign: ClassVar[int] = -1

    def curves(self, run: Run) -> tuple[Curve, Curve]:
        """At the steps that have both a look and judged samples."""
        steps, entropy = measure(run, "relative_entropy")
        balance = 1 - abs(2 * entropy - 1)
        quality = scalar_curve(run, QUALITY, "no generated text was judged")
        return Curve(steps, mean(balance.reshape(len(steps), -1), axis=1)), quality
