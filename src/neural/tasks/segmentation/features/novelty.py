"""New words of an element, and words that the element before it was the last to use.

Elements are sentences or lines. Words are compared by their stems: words without their suffix.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from neural.tasks.segmentation.document import SegmentationDocument
from neural.tasks.segmentation.feature import Feature
from neural.tasks.segmentation.kernels import count_far_words
from neural.tasks.segmentation.tokenization import ElementTokens

NOVELTY_DISTANCES = (8, 32)
"""A word counts as new, or as gone, if this many elements before, or after, do not use it."""


class Novelty(Feature):
    """Fractions of new stems and of disappearing stems, from 0 to 1.

    `new` is the fraction of the element's stems that are never used before it; `new_8` and `new_32`
    are the fractions not used in the last 8 and 32 elements. `gone` is the fraction of the stems of
    the element before that are never used again; `gone_8` and `gone_32` are the fractions not used
    in the next 8 and 32 elements. An element without stems has 0.
    """

    columns: ClassVar[tuple[str, ...]] = (
        "new",
        *(f"new_{distance}" for distance in NOVELTY_DISTANCES),
        "gone",
        *(f"gone_{distance}" for distance in NOVELTY_DISTANCES),
    )

    def compute(self, document: SegmentationDocument, tokens: ElementTokens) -> np.ndarray:
        """Columns from the distances of each stem to its previous and next use."""
        stems = tokens.stems
        stem_counts = np.maximum(stems.counts, 1)[:, None]
        # A distance is above the number of elements if there is no such use.
        limits = (len(tokens), *NOVELTY_DISTANCES)
        new, gone = (
            count_far_words(distances, stems.starts, limits) / stem_counts
            for distances in stems.word_distances
        )
        return np.concatenate(
            [new, np.concatenate([np.zeros((1, len(limits))), gone[:-1]])], axis=1
        )
