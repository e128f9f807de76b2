"""Self-similarity of elements (sentences or lines) by the words they share, in any order.

The columns are twelve statistics of each element's similarities; see `SelfSimilarity`
in feature.py.
"""

from __future__ import annotations

import numpy as np

from neural.tasks.segmentation.feature import SelfSimilarity, SimilarityFunction
from neural.tasks.segmentation.kernels import count_shared_words
from neural.tasks.segmentation.tokenization import ElementTokens


class WordOverlap(SelfSimilarity):
    """The similarity is the Jaccard index: shared words divided by the words of either element."""

    def make_similarity_function(self, tokens: ElementTokens) -> SimilarityFunction:
        """Similarity function that counts shared words with an inverted index.

        The index holds, for every word w, the elements that contain it, its holders:
        `holders[holder_starts[w] : holder_starts[w + 1]]`.
        """
        distinct = tokens.distinct
        element_ids = np.repeat(np.arange(len(tokens), dtype=np.int32), np.diff(distinct.starts))
        holders = element_ids[np.argsort(distinct.ids, kind="stable")]
        holder_starts = np.concatenate([[0], np.cumsum(distinct.element_frequency)])
        sizes = np.diff(distinct.starts).astype(np.float64)

        def compute_block(rows: slice, columns: slice) -> np.ndarray:
            shared = count_shared_words(
                distinct.ids, distinct.starts, holders, holder_starts, rows, columns
            )
            return shared / np.maximum(sizes[rows, None] + sizes[columns] - shared, 1)

        return compute_block
