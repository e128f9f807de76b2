"""Self-similarity by the first word and the first two words."""

from __future__ import annotations

from neural.tasks.segmentation.feature import (
    SelfSimilarity,
    SimilarityRows,
    combine_keys,
    make_agreement_rows,
)
from neural.tasks.segmentation.tokenization import ElementTokens


class FirstWords(SelfSimilarity):
    """1 if the first two words are equal, 0.5 if only the first word is."""

    def make_row_function(self, tokens: ElementTokens) -> SimilarityRows:
        """Compares word ids."""
        first = tokens.nth_token(0)
        return make_agreement_rows(first, combine_keys(first, tokens.nth_token(1)))
