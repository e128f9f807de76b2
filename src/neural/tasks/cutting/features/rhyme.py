"""Elements that rhyme: the sound of their last words."""

from __future__ import annotations

import numpy as np

from neural.tasks.cutting.rhymes import endings, made_with
from neural.tasks.cutting.similarity import Rows, Similarity, agreement
from neural.tasks.cutting.words import Words


class Rhyme(Similarity):
    """1 where all is alike from the last stressed vowel on, 0.5 where only the last syllable is."""

    def rows(self, words: Words) -> Rows:
        """By the sounds of the last words, each looked up once."""
        last = words.nth(-1)
        keys: dict[str, int] = {"": -1}
        table = np.full((len(words.vocabulary) + 1, 2), -1)   # the row of −1 is the last
        for word in {int(one) for one in last} - {-1}:
            table[word] = [keys.setdefault(sound, len(keys)) for sound in endings(words.vocabulary[word])]
        return agreement(table[last, 0], table[last, 1])

    @classmethod
    def made_with(cls) -> str:
        """The dictionary of sounds, or that there was none."""
        return made_with()
