"""Repetition: the longest repeated passage."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from neural.analysis.quality_measure import (
    QualityMeasure,
    ReferenceTexts,
    extract_ngrams,
    mean_or_nan,
)


class LongestRepeat(QualityMeasure):
    """Longest passage that occurs twice in a sample, in characters: from 0 to the length − 1.

    0: no character occurs twice; length − 1: one repeated character. The two occurrences may
    overlap, as they do in a loop.
    """

    unit: ClassVar[str] = "characters"

    def compute_scores(
        self, samples: Sequence[str], references: ReferenceTexts
    ) -> dict[str, float]:
        """`longest_repeat`."""
        return {"longest_repeat": mean_or_nan([find_longest_repeat(sample) for sample in samples])}


def find_longest_repeat(text: str) -> int:
    """Length of the longest repeated substring.

    By bisection: if a passage is repeated, so are all shorter passages inside it.
    """
    low, high = 0, max(0, len(text) - 1)
    while low < high:
        middle = (low + high + 1) // 2
        passages = extract_ngrams(text, middle)
        if len(set(passages)) < len(passages):
            low = middle
        else:
            high = middle - 1
    return low
