"""Claim, docs/claims.md: "higher quality generations correlate with balanced attention entropy"."""

from __future__ import annotations

from typing import ClassVar

from neural.tracking.run import Run
from neural.views.correlation import Curve, shared
from neural.views.reading import mean, measure, scalar_curve
from neural.views.related import Related

QUALITY = "generation/distance_from_real"
BITS, REPEATED = "generation/bits", "generation/repeated_8"
REAL = "generation/real"
"""What a run describes: the same numbers of real text."""


class BalancedEntropy(Related):
    """Correlation of the changes of balance and of the distance from real text, beyond different seeds: −1 to 1.

    Balance of a head is 1 where its entropy is half of the largest possible, and 0 at both ends; the mean of all heads
    counts. Better text is nearer to real text (`generation/distance_from_real`), so the claim wants a negative number.
    Fewer bits per character are not better: a loop of common words has fewer than real text.
    """

    code: ClassVar[str] = "EVO009"
    claim: ClassVar[str] = "balanced entropy goes with better generated text"
    sign: ClassVar[int] = -1

    def curves(self, run: Run) -> tuple[Curve, Curve]:
        """At the steps that have both a look and judged samples."""
        steps, entropy = measure(run, "relative_entropy")
        balance = 1 - abs(2 * entropy - 1)
        return Curve(steps, mean(balance.reshape(len(steps), -1), axis=1)), quality_curve(run)


def quality_curve(run: Run) -> Curve:
    """The distance of generated text from real text, 0 being best.

    Runs of before this was measured have its parts, averaged over samples: bits, repetition, and
    both of real text.
    """
    source = "no generated text was judged"
    real = run.described(REAL, {})
    if QUALITY in run.names() or not {BITS, REPEATED} <= real.keys():
        return scalar_curve(run, QUALITY, source)
    steps, bits, repeated = shared(*(scalar_curve(run, name, source) for name in (BITS, REPEATED)))
    return Curve(steps, abs(bits - real[BITS]) + real[BITS] * abs(repeated - real[REPEATED]))
