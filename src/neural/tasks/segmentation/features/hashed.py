"""Topic of an element by signed feature hashing of its stems (Weinberger et al., 2009)."""

from __future__ import annotations

from typing import ClassVar
from zlib import crc32

import numpy as np

from neural.tasks.segmentation.document import SegmentationDocument
from neural.tasks.segmentation.feature import Feature
from neural.tasks.segmentation.tokenization import ElementTokens

HASH_BINS = 64


class Hashed(Feature):
    """Sums of idf-weighted stems in hash bins, with a hashed sign; rows have unit length.

    Bin and sign depend on the letters of the stem alone, so a word is the same in all documents.
    """

    columns: ClassVar[tuple[str, ...]] = tuple(f"bin_{number}" for number in range(HASH_BINS))

    def compute(self, document: SegmentationDocument, tokens: ElementTokens) -> np.ndarray:
        """One addition per word."""
        table = hash_stems(tokens.stems, HASH_BINS)
        lengths = np.sqrt(np.einsum("nw,nw->n", table, table))
        return table / np.where(lengths > 1e-9, lengths, 1)[:, None]


def hash_stems(stems: ElementTokens, width: int) -> np.ndarray:
    """Signed sums of every element's stems in `width` bins, (n, width)."""
    codes = stems.map_vocabulary(lambda stem: crc32(stem.encode("utf-8", "surrogatepass")))
    weights = stems.idf * np.where(codes & 1, 1.0, -1.0)
    cells = stems.element_ids * width + (codes // 2 % width)[stems.ids]
    return np.bincount(cells, weights[stems.ids], len(stems) * width).reshape(-1, width)
