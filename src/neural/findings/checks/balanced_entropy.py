"""Claim (docs/claims.md): "higher quality generations correlate with balanced attention entropy".

The distance from real text (findings/quality/distance_from_real.py) compares generated with real
text: in bits per character under an n-gram model, and in the share of repeated 8-grams.
"""

from __future__ import annotations

from typing import ClassVar

from neural.findings.check import CorrelationCheck
from neural.findings.record import Record
from neural.findings.run_loading import finite_mean, load_measure, load_scalar_curve
from neural.findings.sample_quality import REAL_TEXT_KEY
from neural.stats.correlation import Curve, align_curves

QUALITY_METRIC = "generation/distance_from_real"
"""Distance of generated from real text, in bits per character; 0 is best."""
BITS_METRIC, REPETITION_METRIC = "generation/bits", "generation/repeated_8"
"""The two components of that distance, measured on generated text."""


class BalancedEntropy(CorrelationCheck):
    """Tests whether generated text is better at the steps at which entropy is more balanced.

    The balance of a head is 1 if its entropy is half of the maximum, and 0 if its entropy is 0 or
    the maximum; it is averaged over heads. The number, from −2 to 2, is the correlation of the
    balance with the distance from real text, beyond the trend that all seeds share
    (stats/correlation.py). Better text has a smaller distance, so the claim predicts a negative
    number.
    """

    code: ClassVar[str] = "EVO009"
    claim: ClassVar[str] = "balanced entropy goes with better generated text"
    expected_sign: ClassVar[int] = -1

    @classmethod
    def applies_to(cls, run: Record) -> bool:
        """Runs whose generated text was scored."""
        return super().applies_to(run) and any(
            name.startswith("generation/") for name in run.scalar_names()
        )

    def load_curves(self, run: Record) -> tuple[Curve, Curve]:
        """Mean balance of all heads, and the distance from real text."""
        steps, entropy = load_measure(run, "relative_entropy")
        balance = 1 - abs(2 * entropy - 1)
        mean_balance = finite_mean(balance.reshape(len(steps), -1), axis=1)
        return Curve(steps, mean_balance), load_quality_curve(run)


def load_quality_curve(run: Record) -> Curve:
    """The distance of generated text from real text; 0 is best.

    Older runs have only its two components, averaged over samples. Both are also known for real
    text, so the distance is estimated from the differences.
    """
    reason = "the quality of generated text was not measured"
    real = run.metadata(REAL_TEXT_KEY, {})
    if QUALITY_METRIC in run.scalar_names() or not {BITS_METRIC, REPETITION_METRIC} <= real.keys():
        return load_scalar_curve(run, QUALITY_METRIC, reason)
    steps, bits, repeated = align_curves(
        *(load_scalar_curve(run, name, reason) for name in (BITS_METRIC, REPETITION_METRIC))
    )
    return Curve(
        steps,
        abs(bits - real[BITS_METRIC]) + real[BITS_METRIC] * abs(repeated - real[REPETITION_METRIC]),
    )
