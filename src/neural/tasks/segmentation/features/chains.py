"""Lexical chains: repeated words and the gaps that they bridge (Morris and Hirst, 1991).

A gap is the place between an element (sentence or line) and the one before it. A link joins two
uses of a stem that follow each other; a chain is a series of links.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from neural.tasks.segmentation.document import SegmentationDocument
from neural.tasks.segmentation.feature import Feature, windowed_mean
from neural.tasks.segmentation.tokenization import ElementTokens, find_term_distances

LINK_DISTANCES = (4, 12, 32)
"""Maximum distances in elements between two uses of a word that are linked."""
NEIGHBOURHOOD_GAPS = 32
"""Number of gaps on either side over which the local mean is taken."""


class Chains(Feature):
    """Links across the gap, and chains that begin or end at it, per link distance.

    `links`: log(1 + links that bridge the gap). `usual`: that number relative to the local mean.
    `begin`, `end`: chains that begin at the element, and that end just before it, divided by the
    number of stems of that element.
    """

    columns: ClassVar[tuple[str, ...]] = (
        *(f"links_{distance}" for distance in LINK_DISTANCES),
        *(f"usual_{distance}" for distance in LINK_DISTANCES),
        *(f"begin_{distance}" for distance in LINK_DISTANCES),
        *(f"end_{distance}" for distance in LINK_DISTANCES),
    )

    def compute(self, document: SegmentationDocument, tokens: ElementTokens) -> np.ndarray:
        """Count links by a difference array: +1 where a link begins, −1 where it ends."""
        stems = tokens.stems
        # Distances in elements of every stem to its previous and its next use.
        back, ahead = find_term_distances(stems)
        count, element_ids = len(tokens), stems.element_ids
        stem_counts = np.maximum(stems.counts, 1)
        out = np.zeros((4, len(LINK_DISTANCES), count))
        for row, distance in enumerate(LINK_DISTANCES):
            is_linked = (ahead > 0) & (ahead <= distance)
            starts = element_ids[is_linked]
            steps = (
                np.bincount(starts + 1, minlength=count + 1)
                - np.bincount(starts + ahead[is_linked] + 1, minlength=count + 1)[: count + 1]
            )
            bridging = np.cumsum(steps)[:count]
            is_first = (back > distance) & (ahead <= distance)
            is_last = (back <= distance) & (ahead > distance)
            out[0, row] = np.log1p(bridging)
            out[1, row] = bridging / (1 + windowed_mean(bridging, NEIGHBOURHOOD_GAPS))
            out[2, row] = np.bincount(element_ids[is_first], minlength=count) / stem_counts
            ended = np.bincount(element_ids[is_last], minlength=count) / stem_counts
            out[3, row, 1:] = ended[:-1]
        return out.reshape(-1, count).T
