"""Local coherence: cross-entropy of samples under an n-gram model of held-out text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from neural.findings.quality_measure import QualityMeasure, ReferenceTexts, mean_or_nan


class Bits(QualityMeasure):
    """Bits per character under a 6-gram model of held-out text: 0 predictable, 6 or more noise.

    There is no upper bound; random characters have more bits than log2 of the alphabet size. Real
    text has a value of its own (`measure_real_text`). Samples with far more bits are not in the
    language; samples with far fewer bits repeat common words. So fewer bits are not better. The
    measure `distance_from_real` compares bits and repetition with those of real text.
    """

    unit: ClassVar[str] = "bits per character"

    def compute_scores(
        self, samples: Sequence[str], references: ReferenceTexts
    ) -> dict[str, float]:
        """The metric `bits`."""
        return {
            "bits": mean_or_nan(
                [references.ngrams.bits_per_character(sample) for sample in samples if sample]
            )
        }
