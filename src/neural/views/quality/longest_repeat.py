"""Repetition: the longest passage that comes twice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from neural.views.quality_measure import QualityMeasure, References, average, grams


class LongestRepeat(QualityMeasure):
    """Longest passage that a sample has twice, in characters: 0 no character twice, its length − 1 one letter only.

    The two may overlap, as they do in a loop.
    """

    unit: ClassVar[str] = "characters"

    def scores(self, samples: Sequence[str], references: References) -> dict[str, float]:
        """`longest_repeat`."""
        return {"longest_repeat": average([longest_repeat(one) for one in samples])}


def longest_repeat(text: str) -> int:
    """By halving: where a passage comes twice, so do all shorter ones inside it."""
    low, high = 0, max(0, len(text) - 1)
    while low < high:
        middle = (low + high + 1) // 2
        found = grams(text, middle)
        if len(set(found)) < len(found):
            low = middle
        else:
            high = middle - 1
    return low
