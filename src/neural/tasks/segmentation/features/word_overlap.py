"""Self-similarity of elements (sentences or lines) by the words they share, in any order.

The columns are twelve statistics of each element's similarities; see `SelfSimilarity`
in feature.py.
"""

from __future__ import annotations

import numpy as np

from neural.tasks.segmentation.feature import SelfSimilarity, SimilarityFunction
from neural.tasks.segmentation.tokenization import ElementTokens


class WordOverlap(SelfSimilarity):
    """The similarity is the Jaccard index: shared words divided by the words of either element."""

    def make_similarity_function(self, tokens: ElementTokens) -> SimilarityFunction:
        """Similarity function that counts shared words with an inverted index.

        The index holds, for every word w, the elements that contain it, its holders:
        `holders[holder_starts[w] : holder_starts[w + 1]]`.
        """
        # Imported here, because kernels.py imports numba.
        from neural.tasks.segmentation.kernels import count_shared_words

        vocabulary_size = max(1, len(tokens.vocabulary))
        # Every distinct word once per element, ordered by element.
        element_ids, ids = np.divmod(
            np.unique(tokens.element_ids * vocabulary_size + tokens.ids), vocabulary_size
        )
        starts = np.searchsorted(element_ids, np.arange(len(tokens) + 1))
        holders = element_ids[np.argsort(ids, kind="stable")]
        holder_starts = np.concatenate(
            [[0], np.cumsum(np.bincount(ids, minlength=vocabulary_size))]
        )
        sizes = np.diff(starts).astype(np.float64)

        def compute_block(rows: slice, columns: slice) -> np.ndarray:
            shared = np.zeros((rows.stop - rows.start, columns.stop - columns.start))
            count_shared_words(
                ids, starts, holders, holder_starts, rows.start, columns.start, columns.stop, shared
            )
            return shared / np.maximum(sizes[rows, None] + sizes[columns] - shared, 1)

        return compute_block
