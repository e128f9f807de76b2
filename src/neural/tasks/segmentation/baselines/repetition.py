"""Baseline for songs: lines that occur more than once are taken for the chorus.

Elements are the lines of a song, or the sentences of another text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from neural.language.declaration import int_field
from neural.tasks.segmentation.baseline import SegmentationBaseline
from neural.tasks.segmentation.boundary_encoding import Boundaries, labels_to_boundaries
from neural.tasks.segmentation.tokenization import tokenize_elements


class Repetition(SegmentationBaseline):
    """Labels elements as repeated or not, smooths the labels, and splits where they change.

    The smoothed label is the majority in a window around the element. Elements are equal if their
    words are, regardless of case and punctuation. Elements without words never count as repeated.
    """

    smoothing_window: int = int_field(
        "Elements that vote on the label of the middle one; a tie keeps it.", default=5
    )

    def find_boundaries(self, elements: Sequence[str]) -> Boundaries:
        """Boundaries where the smoothed label changes."""
        tokens = tokenize_elements(elements)
        keys = [  # the word ids of each element as bytes; empty without words
            tokens.ids[first:last].tobytes()
            for first, last in zip(tokens.starts, tokens.starts[1:], strict=False)
        ]
        counts = Counter(keys)
        is_repeated = np.array([bool(key) and counts[key] > 1 for key in keys])
        cumulative = np.concatenate([[0], np.cumsum(is_repeated)])
        positions, radius = np.arange(len(keys)), self.smoothing_window // 2
        start = np.maximum(positions - radius, 0)
        end = np.minimum(positions + radius + 1, len(keys))
        twice_votes = 2 * (cumulative[end] - cumulative[start])
        voters = end - start
        smoothed = np.where(twice_votes == voters, is_repeated, twice_votes > voters)
        return labels_to_boundaries(smoothed)
