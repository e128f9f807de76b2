"""Self-similarity by the last word and the last two words."""

from __future__ import annotations

from neural.tasks.segmentation.feature import (
    SelfSimilarity,
    SimilarityRows,
    combine_keys,
    make_agreement_rows,
)
from neural.tasks.segmentation.tokenization import ElementTokens


class LastWords(SelfSimilarity):
    """1 if the last two words are equal, 0.5 if only the last word is."""

    def make_row_function(self, tokens: ElementTokens) -> SimilarityRows:
        """Compares word ids."""
        last = tokens.nth_token(-1)
        return make_agreement_rows(last, combine_keys(last, tokens.nth_token(-2)))
