"""Elements that begin alike: the first word, and the first two."""

from __future__ import annotations

from neural.tasks.cutting.similarity import Rows, Similarity, agreement, paired
from neural.tasks.cutting.words import Words


class FirstWords(Similarity):
    """1 where the first two words are the same, 0.5 where only the first is."""

    def rows(self, words: Words) -> Rows:
        """By the numbers of the words."""
        first = words.nth(0)
        return agreement(first, paired(first, words.nth(1)))
