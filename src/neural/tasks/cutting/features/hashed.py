"""What an element is about, in 64 numbers: its words thrown into bins, with signs (Weinberger et al., 2009)."""

from __future__ import annotations

from typing import ClassVar
from zlib import crc32

import numpy as np

from neural.tasks.cutting.document import Document
from neural.tasks.cutting.feature import Feature
from neural.tasks.cutting.words import Words

WIDTH = 64


class Hashed(Feature):
    """Stems weighed by their rarity in the document, each added to or taken from one bin; the row's length is 1.

    Which bin and which sign follow from the letters of the stem alone, so the same word is the same in all documents.
    """

    columns: ClassVar[tuple[str, ...]] = tuple(f"bin_{number}" for number in range(WIDTH))

    def compute(self, document: Document, words: Words) -> np.ndarray:
        """One addition per word."""
        table = thrown(words.stems, WIDTH)
        lengths = np.sqrt(np.einsum("nw,nw->n", table, table))
        return table / np.where(lengths > 1e-9, lengths, 1)[:, None]


def thrown(stems: Words, width: int) -> np.ndarray:
    """Every element's stems in so many bins, (n, width)."""
    codes = stems.each(lambda stem: crc32(stem.encode("utf-8", "surrogatepass")))
    weights = stems.rarity * np.where(codes & 1, 1.0, -1.0)
    places = stems.owners * width + (codes // 2 % width)[stems.ids]
    return np.bincount(places, weights[stems.ids], len(stems) * width).reshape(-1, width)
