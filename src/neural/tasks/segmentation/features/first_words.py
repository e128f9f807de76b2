"""Self-similarity of elements (sentences or lines) by their first word and first two words.

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


class FirstWords(SelfSimilarity):
    """The similarity is 1 if the first two words are equal, 0.5 if only the first word is."""

    def make_similarity_function(self, tokens: ElementTokens) -> SimilarityFunction:
        """Similarity function that compares word ids."""
        first = tokens.nth_token(0)
        first_two = combine_keys(first, tokens.nth_token(1))
        return make_key_similarity(loose=first, strict=first_two)
