"""Lexical chains: words that are said again soon, and the gaps that they bridge (Morris and Hirst, 1991)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from neural.tasks.cutting.document import Document
from neural.tasks.cutting.feature import Feature, windowed_mean
from neural.tasks.cutting.occurrences import distances
from neural.tasks.cutting.words import Words

REACHES = (4, 12, 32)
"""Elements between two uses of a word that still link them."""
AROUND = 32
"""Gaps on either side that a gap is compared with."""


class Chains(Feature):
    """For every reach: links that bridge the gap (logarithm of one more), and as a multiple of what is usual around;
    then how many chains begin at the element and end just before it, per word of theirs."""

    columns: ClassVar[tuple[str, ...]] = (
        *(f"links_{reach}" for reach in REACHES), *(f"usual_{reach}" for reach in REACHES),
        *(f"begin_{reach}" for reach in REACHES), *(f"end_{reach}" for reach in REACHES),
    )  # fmt: skip

    def compute(self, document: Document, words: Words) -> np.ndarray:
        """A link adds one to all gaps that it bridges: one up where it begins, one down where it ends."""
        stems = words.stems
        back, ahead = distances(stems)
        count, owners, sizes = len(words), stems.owners, np.maximum(stems.counts, 1)
        out = np.zeros((4, len(REACHES), count))
        for row, reach in enumerate(REACHES):
            linked = (ahead > 0) & (ahead <= reach)
            begins = owners[linked]
            steps = np.bincount(begins + 1, minlength=count + 1) - np.bincount(
                begins + ahead[linked] + 1, minlength=count + 1
            )[: count + 1]
            bridging = np.cumsum(steps)[:count]
            first = (back > reach) & (ahead <= reach)
            last = (back <= reach) & (ahead > reach)
            out[0, row] = np.log1p(bridging)
            out[1, row] = bridging / (1 + windowed_mean(bridging, AROUND))
            out[2, row] = np.bincount(owners[first], minlength=count) / sizes
            out[3, row, 1:] = (np.bincount(owners[last], minlength=count) / sizes)[:-1]
        return out.reshape(-1, count).T
