"""Elements that end alike: the last word, and the last two."""

from __future__ import annotations

from neural.tasks.cutting.similarity import Rows, Similarity, agreement, paired
from neural.tasks.cutting.words import Words


class LastWords(Similarity):
    """1 where the last two words are the same, 0.5 where only the last is."""

    def rows(self, words: Words) -> Rows:
        """By the numbers of the words."""
        last = words.nth(-1)
        return agreement(last, paired(last, words.nth(-2)))
