"""Repetition: share of repeated n-grams."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from neural.findings.quality_measure import (
    REPEATED_NGRAM_LENGTH,
    QualityMeasure,
    ReferenceTexts,
    compute_repeated_share,
    mean_or_nan,
)


class Repeated(QualityMeasure):
    """Share of character 8-grams that a sample has more than once: 0 none repeated, 1 a loop."""

    unit: ClassVar[str] = "share"

    def compute_scores(
        self, samples: Sequence[str], references: ReferenceTexts
    ) -> dict[str, float]:
        """The metric `repeated_8`."""
        return {
            f"repeated_{REPEATED_NGRAM_LENGTH}": mean_or_nan(
                [compute_repeated_share(sample) for sample in samples]
            )
        }
