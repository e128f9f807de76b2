"""Self-similarity of elements (sentences or lines) by their last word and last two words.

The columns are twelve statistics of each element's similarities; see `SelfSimilarity`
in feature.py.
"""

from __future__ import annotations

from neural.tasks.segmentation.feature import (
    SelfSimilarity,
    SimilarityFunction,
    combine_keys,
    make_key_similarity,
)
from neural.tasks.segmentation.tokenization import ElementTokens


class LastWords(SelfSimilarity):
    """The similarity is 1 if the last two words are equal, 0.5 if only the last word is."""

    def make_similarity_function(self, tokens: ElementTokens) -> SimilarityFunction:
        """Similarity function that compares word ids."""
        last = tokens.nth_token(-1)
        last_two = combine_keys(last, tokens.nth_token(-2))
        return make_key_similarity(loose=last, strict=last_two)
