"""Diversity: share of different n-grams (Li et al., 2016, "distinct-n")."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from neural.findings.quality_measure import (
    QualityMeasure,
    ReferenceTexts,
    extract_ngrams,
    mean_or_nan,
)

NGRAM_LENGTHS = (1, 2, 3, 4)
"""Numbers of characters n of the n-grams; there is one metric for each."""


class Distinct(QualityMeasure):
    """Share of different character n-grams of a sample: near 0 repetitive, 1 all different.

    The share falls with the length of a sample: only samples of one length are comparable.
    """

    unit: ClassVar[str] = "share"

    def compute_scores(
        self, samples: Sequence[str], references: ReferenceTexts
    ) -> dict[str, float]:
        """The metrics `distinct_1` … `distinct_4`."""
        scores = {}
        for length in NGRAM_LENGTHS:
            ngram_lists = [extract_ngrams(sample, length) for sample in samples]
            scores[f"distinct_{length}"] = mean_or_nan(
                [len(set(ngrams)) / len(ngrams) for ngrams in ngram_lists if ngrams]
            )
        return scores
