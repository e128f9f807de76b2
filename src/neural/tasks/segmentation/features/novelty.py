"""New and disappearing words: first used at an element, or last used in the element before.

Elements are sentences or lines; words count by their stems.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from neural.tasks.segmentation.document import SegmentationDocument
from neural.tasks.segmentation.feature import Feature
from neural.tasks.segmentation.tokenization import ElementTokens, find_term_distances

NOVELTY_DISTANCES = (8, 32)
"""Number of elements without a word after which the word counts as new, or as gone."""


class Novelty(Feature):
    """Fractions of an element's stems that are new, and of the stems before that do not come again.

    `new`: never used before, or not within 8 and 32 elements. `gone`: stems of the element before
    that are never used again, or not within 8 and 32 elements. 0 without stems.
    """

    columns: ClassVar[tuple[str, ...]] = (
        "new",
        *(f"new_{distance}" for distance in NOVELTY_DISTANCES),
        "gone",
        *(f"gone_{distance}" for distance in NOVELTY_DISTANCES),
    )

    def compute(self, document: SegmentationDocument, tokens: ElementTokens) -> np.ndarray:
        """Columns from the distances, in elements, of each stem to its previous and next use."""
        stems = tokens.stems
        back, ahead = find_term_distances(stems)
        out = np.zeros((len(tokens), len(self.columns)))
        # A distance of len(tokens) means never.
        for column, distance in enumerate((len(tokens), *NOVELTY_DISTANCES)):
            out[:, column] = _fraction_per_element(back > distance, stems)
            out[1:, column + 1 + len(NOVELTY_DISTANCES)] = _fraction_per_element(
                ahead > distance, stems
            )[:-1]
        return out


def _fraction_per_element(mask: np.ndarray, tokens: ElementTokens) -> np.ndarray:
    """Fraction of each element's words where the mask is True."""
    return np.bincount(tokens.element_ids, mask, len(tokens)) / np.maximum(tokens.counts, 1)
