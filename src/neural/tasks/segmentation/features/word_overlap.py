"""Self-similarity by shared words, in any order."""

from __future__ import annotations

import numpy as np

from neural.tasks.segmentation.feature import SelfSimilarity, SimilarityRows
from neural.tasks.segmentation.tokenization import ElementTokens


class WordOverlap(SelfSimilarity):
    """Jaccard index (1901) of the words of two elements: shared words over words of either."""

    def make_row_function(self, tokens: ElementTokens) -> SimilarityRows:
        """By an inverted index: for every word, the elements that contain it."""
        # Imported here: the module imports numba.
        from neural.tasks.segmentation.kernels import count_shared_words

        vocabulary_size = max(1, len(tokens.vocabulary))
        # every word once per element
        element_ids, ids = np.divmod(
            np.unique(tokens.element_ids * vocabulary_size + tokens.ids), vocabulary_size
        )
        starts = np.searchsorted(element_ids, np.arange(len(tokens) + 1))
        holders = element_ids[np.argsort(ids, kind="stable")]
        lists = np.concatenate([[0], np.cumsum(np.bincount(ids, minlength=vocabulary_size))])
        sizes = np.diff(starts).astype(np.float64)

        def compute_rows(rows: slice, columns: slice) -> np.ndarray:
            shared = np.zeros((rows.stop - rows.start, columns.stop - columns.start))
            count_shared_words(
                ids, starts, holders, lists, rows.start, columns.start, columns.stop, shared
            )
            return shared / np.maximum(sizes[rows, None] + sizes[columns] - shared, 1)

        return compute_rows
