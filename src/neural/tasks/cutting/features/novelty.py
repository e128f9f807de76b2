"""Words that come and words that go: new at an element, or said for the last time by the one before it."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from neural.tasks.cutting.document import Document
from neural.tasks.cutting.feature import Feature
from neural.tasks.cutting.occurrences import distances
from neural.tasks.cutting.words import Words

REACHES = (8, 32)
"""Elements without a word after which it counts as new, or as gone."""


class Novelty(Feature):
    """Shares of an element's topic words: never said before, not said for 8 and for 32 elements; and of the element
    before it: never said again, not again for 8 and for 32. 0 where there are no such words."""

    columns: ClassVar[tuple[str, ...]] = (
        "new", *(f"new_{reach}" for reach in REACHES), "gone", *(f"gone_{reach}" for reach in REACHES)
    )  # fmt: skip

    def compute(self, document: Document, words: Words) -> np.ndarray:
        """From the distance of every word to its last and its next use."""
        stems = words.stems
        back, ahead = distances(stems)
        out = np.zeros((len(words), len(self.columns)))
        for column, reach in enumerate((len(words), *REACHES)):
            out[:, column] = _share(back > reach, stems)
            out[1:, column + 1 + len(REACHES)] = _share(ahead > reach, stems)[:-1]
        return out


def _share(which: np.ndarray, words: Words) -> np.ndarray:
    """Which part of each element's words it is."""
    return np.bincount(words.owners, which, len(words)) / np.maximum(words.counts, 1)
