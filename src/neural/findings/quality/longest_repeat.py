"""Repetition: the longest repeated passage."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from neural.findings.quality_measure import (
    QualityMeasure,
    ReferenceTexts,
    extract_ngrams,
    mean_or_nan,
)


class LongestRepeat(QualityMeasure):
    """Longest passage that occurs twice in a sample, in characters: from 0 to the length − 1.

    It is 0 if no character occurs twice, and the length − 1 if the sample repeats one character.
    The two occurrences may overlap.
    """

    unit: ClassVar[str] = "characters"

    def compute_scores(
        self, samples: Sequence[str], references: ReferenceTexts
    ) -> dict[str, float]:
        """The metric `longest_repeat`."""
        return {"longest_repeat": mean_or_nan([find_longest_repeat(sample) for sample in samples])}


def find_longest_repeat(text: str) -> int:
    """Length of the longest substring that occurs at least twice."""
    # bisection works because a repeated passage contains repeated passages of all shorter lengths
    low, high = 0, max(0, len(text) - 1)
    while low < high:
        middle = (low + high + 1) // 2
        passages = extract_ngrams(text, middle)
        if len(set(passages)) < len(passages):
            low = middle
        else:
            high = middle - 1
    return low
