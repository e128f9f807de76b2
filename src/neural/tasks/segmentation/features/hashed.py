"""Topic of an element (sentence or line): feature hashing of its stems (Weinberger et al., 2009).

A stem is a word without its suffix. Its hash selects a bin and a sign; collisions of different
stems cancel on average, because their signs are random.
"""

from __future__ import annotations

from typing import ClassVar
from zlib import crc32

import numpy as np

from neural.tasks.segmentation.document import SegmentationDocument
from neural.tasks.segmentation.feature import Feature
from neural.tasks.segmentation.tokenization import ElementTokens

HASH_BINS = 64
"""Number of bins, one column each."""


class Hashed(Feature):
    """Signed sums of the stems in each bin, weighted by idf; every row is scaled to norm 1.

    Bin and sign depend on the letters of the stem alone, so they are the same in all documents.
    """

    columns: ClassVar[tuple[str, ...]] = tuple(f"bin_{number}" for number in range(HASH_BINS))

    def compute(self, document: SegmentationDocument, tokens: ElementTokens) -> np.ndarray:
        """Table of (n, 64); zeros for an element without stems."""
        table = hash_stems(tokens.stems, HASH_BINS)
        lengths = np.sqrt(np.einsum("nw,nw->n", table, table))
        return table / np.where(lengths > 1e-9, lengths, 1)[:, None]


def hash_stems(stems: ElementTokens, width: int) -> np.ndarray:
    """Signed idf-weighted sums of every element's stems in `width` bins, (n, width)."""
    codes = stems.map_vocabulary(lambda stem: crc32(stem.encode("utf-8", "surrogatepass")))
    # The lowest bit of the hash is the sign, the others select the bin.
    weights = stems.idf * np.where(codes & 1, 1.0, -1.0)
    cells = stems.element_ids * width + (codes // 2 % width)[stems.ids]
    return np.bincount(cells, weights[stems.ids], len(stems) * width).reshape(-1, width)
