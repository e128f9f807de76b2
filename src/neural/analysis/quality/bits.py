"""Local coherence: cross-entropy of samples under an n-gram model of held-out text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from neural.analysis.quality_measure import QualityMeasure, ReferenceTexts, mean_or_nan


class Bits(QualityMeasure):
    """Bits per character under a 6-gram model of held-out text: 0 predictable, 6 or more noise.

    There is no upper bound; random characters give more than log2 of the alphabet size. Real text
    has its own value (`measure_real_text`). Far above it is not the language; far below it is a
    repetition of common words. So fewer are not better: `distance_from_real` measures the distance
    from that value, and repetition.
    """

    unit: ClassVar[str] = "bits per character"

    def compute_scores(
        self, samples: Sequence[str], references: ReferenceTexts
    ) -> dict[str, float]:
        """`bits`."""
        return {
            "bits": mean_or_nan(
                [references.ngrams.bits_per_character(sample) for sample in samples if sample]
            )
        }
