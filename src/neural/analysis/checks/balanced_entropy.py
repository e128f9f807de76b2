"""Claim, docs/claims.md: "higher quality generations correlate with balanced attention entropy"."""

from __future__ import annotations

from typing import ClassVar

from neural.analysis.check import CorrelationCheck
from neural.analysis.correlation import Curve, align_curves
from neural.analysis.run_loading import finite_mean, load_measure, load_scalar_curve
from neural.analysis.sample_quality import REAL_TEXT_KEY
from neural.runs.run import Run

QUALITY_METRIC = "generation/distance_from_real"
BITS_METRIC, REPETITION_METRIC = "generation/bits", "generation/repeated_8"
"""Bits per character by an n-gram model, and share of repeated 8-grams (analysis/quality/)."""


class BalancedEntropy(CorrelationCheck):
    """Correlation of entropy balance with the distance from real text, beyond the trend: −1 to 1.

    The balance of a head is 1 if its entropy is half of the maximum, and 0 at both ends; it is
    averaged over heads. Better text is closer to real text (`generation/distance_from_real`), so
    the claim predicts a negative number. Fewer bits per character are not better: a loop of common
    words has fewer than real text.
    """

    code: ClassVar[str] = "EVO009"
    claim: ClassVar[str] = "balanced entropy goes with better generated text"
    expected_sign: ClassVar[int] = -1

    def load_curves(self, run: Run) -> tuple[Curve, Curve]:
        """Mean balance of all heads, and the distance from real text."""
        steps, entropy = load_measure(run, "relative_entropy")
        balance = 1 - abs(2 * entropy - 1)
        mean_balance = finite_mean(balance.reshape(len(steps), -1), axis=1)
        return Curve(steps, mean_balance), load_quality_curve(run)


def load_quality_curve(run: Run) -> Curve:
    """The distance of generated text from real text; 0 is best.

    Older runs have only its components, averaged over samples: bits and repetition. Both are also
    known for real text, so that the distance is estimated from the differences.
    """
    source = "the quality of generated text was not measured"
    real = run.metadata(REAL_TEXT_KEY, {})
    if QUALITY_METRIC in run.scalar_names() or not {BITS_METRIC, REPETITION_METRIC} <= real.keys():
        return load_scalar_curve(run, QUALITY_METRIC, source)
    steps, bits, repeated = align_curves(
        *(load_scalar_curve(run, name, source) for name in (BITS_METRIC, REPETITION_METRIC))
    )
    return Curve(
        steps,
        abs(bits - real[BITS_METRIC]) + real[BITS_METRIC] * abs(repeated - real[REPETITION_METRIC]),
    )
