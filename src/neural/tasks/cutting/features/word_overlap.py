"""Elements that share words, whatever their order."""

from __future__ import annotations

import numpy as np

from neural.modules.late import late
from neural.tasks.cutting.similarity import Rows, Similarity
from neural.tasks.cutting.words import Words

kernels = late("neural.tasks.cutting.kernels")


class WordOverlap(Similarity):
    """Shared words as a part of all words that either has: 1 has the same words, 0 none in common (Jaccard, 1901)."""

    def rows(self, words: Words) -> Rows:
        """By a list for every word of the elements that have it."""
        known = max(1, len(words.vocabulary))
        owners, ids = np.divmod(np.unique(words.owners * known + words.ids), known)   # every word once per element
        starts = np.searchsorted(owners, np.arange(len(words) + 1))
        holders = owners[np.argsort(ids, kind="stable")]
        lists = np.concatenate([[0], np.cumsum(np.bincount(ids, minlength=known))])
        sizes = np.diff(starts).astype(np.float64)

        def rows(some: slice, among: slice) -> np.ndarray:
            shared = np.zeros((some.stop - some.start, among.stop - among.start))
            kernels.share(ids, starts, holders, lists, some.start, among.start, among.stop, shared)
            return shared / np.maximum(sizes[some, None] + sizes[among] - shared, 1)

        return rows
