"""Elements that are built alike: the kinds of their words, and which kind follows which."""

from __future__ import annotations

import numpy as np

from neural.tasks.cutting.similarity import Rows, Similarity
from neural.tasks.cutting.tags import TAGS, tag
from neural.tasks.cutting.words import Words


class PartOfSpeech(Similarity):
    """The cosine between two elements' counts of kinds and of pairs of kinds that follow each other."""

    def rows(self, words: Words) -> Rows:
        """By counts: single kinds, then pairs."""
        kinds = len(TAGS)
        width = kinds + kinds * kinds
        tags = words.each(tag)[words.ids]
        follows = words.owners[1:] == words.owners[:-1]
        pairs = kinds + tags[:-1][follows] * kinds + tags[1:][follows]
        places = np.concatenate([words.owners * width + tags, words.owners[1:][follows] * width + pairs])
        counts = np.bincount(places, minlength=len(words) * width).reshape(-1, width).astype(np.float32)
        lengths = (counts * counts).sum(axis=1, dtype=np.float64)
        lengths[lengths == 0] = np.inf   # no words: like nothing
        return lambda some, among: (counts[some] @ counts[among].T) / np.sqrt(lengths[some, None] * lengths[among])
