"""Novelty: share of a sample that is not copied from the training text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from neural.findings.quality_measure import (
    QualityMeasure,
    ReferenceTexts,
    extract_ngrams,
    mean_or_nan,
)

NGRAM_LENGTH = 8
"""Characters of an n-gram."""


class Novelty(QualityMeasure):
    """Share of a sample's 8-grams that do not occur in the training text: 0 all copied, 1 none.

    Random characters are novel too; the measure `bits` (findings/quality/bits.py) detects them.
    """

    unit: ClassVar[str] = "share"

    def compute_scores(
        self, samples: Sequence[str], references: ReferenceTexts
    ) -> dict[str, float]:
        """The metric `novelty`."""
        ngram_lists = [extract_ngrams(sample, NGRAM_LENGTH) for sample in samples]
        sample_ngrams = {ngram for ngrams in ngram_lists for ngram in ngrams}
        text = references.training
        # a set of all n-grams of the training text would not fit into memory
        copied = sample_ngrams.intersection(
            text[start : start + NGRAM_LENGTH] for start in range(len(text) - NGRAM_LENGTH + 1)
        )
        shares = [
            sum(ngram not in copied for ngram in ngrams) / len(ngrams)
            for ngrams in ngram_lists
            if ngrams
        ]
        return {"novelty": mean_or_nan(shares)}
