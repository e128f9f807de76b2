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
from neural.tasks.segmentation.kernels import count_chain_links
from neural.tasks.segmentation.tokenization import ElementTokens

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
        """Columns of all distances, (n, 12)."""
        stems = tokens.stems
        stem_counts = np.maximum(stems.counts, 1)
        out = np.zeros((4, len(LINK_DISTANCES), len(tokens)))
        for row, distance in enumerate(LINK_DISTANCES):
            bridging, begins, ends = count_chain_links(
                *stems.word_distances, stems.starts, distance
            )
            out[0, row] = np.log1p(bridging)
            out[1, row] = bridging / (1 + windowed_mean(bridging, NEIGHBOURHOOD_GAPS))
            out[2, row] = begins / stem_counts
            out[3, row, 1:] = (ends / stem_counts)[:-1]
        return out.reshape(-1, len(tokens)).T
