"""How rare words are in a text: inverse document frequency over segments of so many words."""

from __future__ import annotations

import math
import re
from collections import Counter

WORDS = 20
"""Words of a segment; what is left over at the end of a text is no segment."""
MAX_CHARACTERS = 1_000_000
"""Of the text that are counted; of a longer one, the first so many."""


class InverseFrequency:
    """Smoothed as in scikit-learn: log((1 + segments) / (1 + segments with the word)) + 1.

    Never 0: a word that every segment has still counts, and so does one that no segment has.
    """

    def __init__(self, text: str) -> None:
        segments = split_words(text[:MAX_CHARACTERS])
        self._count = len(segments)
        self._having = Counter(word for segment in segments for word in set(segment))

    def __getitem__(self, word: str) -> float:
        return math.log((1 + self._count) / (1 + self._having[word])) + 1


def split_words(text: str, words: int = WORDS) -> list[list[str]]:
    """The words of a text in segments, in lower case."""
    every = re.findall(r"\w+", text.lower())
    return [every[start : start + words] for start in range(0, len(every) - words + 1, words)]
