"""Lexical chains: repeated words and the gaps that they bridge (Morris and Hirst, 1991).

A gap is the place between an element (sentence or line) and the one before it. A stem is a word
without its suffix. A link joins two consecutive uses of a stem if they are at most d elements
apart; a chain is a series of links of one stem.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from neural.tasks.segmentation.document import SegmentationDocument
from neural.tasks.segmentation.feature import Feature, windowed_mean
from neural.tasks.segmentation.tokenization import ElementTokens, find_word_distances

LINK_DISTANCES = (4, 12, 32)
"""Values of d, the maximum distance of a link in elements; each has its own columns."""
NEIGHBOURHOOD_GAPS = 32
"""Number of gaps on either side over which the local mean is taken."""


class Chains(Feature):
    """Links across the gap before an element, and chains that begin or end at it.

    For each maximum distance d: `links_d` is log(1 + number of links across the gap). `usual_d` is
    the number of links divided by 1 + its mean over the neighbouring gaps. `begin_d` is the number
    of chains that begin at the element, `end_d` the number that end at the element before it; each
    is divided by the number of stems of the element where it begins or ends.
    """

    columns: ClassVar[tuple[str, ...]] = (
        *(f"links_{distance}" for distance in LINK_DISTANCES),
        *(f"usual_{distance}" for distance in LINK_DISTANCES),
        *(f"begin_{distance}" for distance in LINK_DISTANCES),
        *(f"end_{distance}" for distance in LINK_DISTANCES),
    )

    def compute(self, document: SegmentationDocument, tokens: ElementTokens) -> np.ndarray:
        """Columns of all distances, (n, 12).

        Links are counted by a difference array: +1 where a link begins, −1 where it ends.
        """
        stems = tokens.stems
        # Distances in elements of every stem to its previous and its next use.
        back, ahead = find_word_distances(stems)
        element_count, element_ids = len(tokens), stems.element_ids
        stem_counts = np.maximum(stems.counts, 1)
        out = np.zeros((4, len(LINK_DISTANCES), element_count))
        for row, distance in enumerate(LINK_DISTANCES):
            is_linked = (ahead > 0) & (ahead <= distance)
            starts = element_ids[is_linked]
            steps = (
                np.bincount(starts + 1, minlength=element_count + 1)
                - np.bincount(starts + ahead[is_linked] + 1, minlength=element_count + 1)[
                    : element_count + 1
                ]
            )
            bridging = np.cumsum(steps)[:element_count]
            is_first = (back > distance) & (ahead <= distance)
            is_last = (back <= distance) & (ahead > distance)
            out[0, row] = np.log1p(bridging)
            out[1, row] = bridging / (1 + windowed_mean(bridging, NEIGHBOURHOOD_GAPS))
            out[2, row] = np.bincount(element_ids[is_first], minlength=element_count) / stem_counts
            ended = np.bincount(element_ids[is_last], minlength=element_count) / stem_counts
            out[3, row, 1:] = ended[:-1]
        return out.reshape(-1, element_count).T
