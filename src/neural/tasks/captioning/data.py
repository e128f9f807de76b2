"""Regions with captions, in the form in which all sources give them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from neural.modules.late import torch
from neural.tasks.focusing.data import SPLITS

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["END", "NOWHERE", "SPLITS", "UNKNOWN", "Captioned", "Split", "coded"]

END, UNKNOWN = 0, 1
"""Ids: what comes before the first word and after the last one, and a word that was never learned."""
NOWHERE = -1
"""The place of a word that is about no region, or nobody knows which."""


@dataclass(frozen=True, kw_only=True)
class Split:
    """Captions of pictures."""

    regions: np.ndarray
    """Features, (pictures, m, d)."""
    picture: np.ndarray
    """Which picture a caption is of, (captions,)."""
    said: np.ndarray
    """Ids of its words, END behind the last and to the end, (captions, T)."""
    lengths: np.ndarray
    """Words of each, with one END."""
    places: np.ndarray
    """Which region each word is about, NOWHERE where none is, (captions, T)."""

    @classmethod
    def of(
        cls, regions: np.ndarray, picture: np.ndarray, words: Sequence[Sequence[str]],
        places: Sequence[Sequence[int | None]], vocabulary: Sequence[str],
    ) -> Split:  # fmt: skip
        """From words and places as lists."""
        ids = {word: number for number, word in enumerate(vocabulary)}
        longest = 1 + max(map(len, words), default=0)
        said = np.full((len(words), longest), END, dtype=np.int64)
        where = np.full((len(words), longest), NOWHERE, dtype=np.int64)
        for row, (one, at) in enumerate(zip(words, places, strict=True)):
            said[row, : len(one)] = [ids.get(word, UNKNOWN) for word in one]
            where[row, : len(at)] = [NOWHERE if place is None else place for place in at]
        lengths = np.array([len(one) + 1 for one in words], dtype=np.int64)
        return cls(regions=regions, picture=np.asarray(picture), said=said, lengths=lengths, places=where)

    def __len__(self) -> int:
        return len(self.said)

    def take(self, captions: np.ndarray | slice) -> dict[str, Tensor]:
        """Captions by number: `x` (B, m, d), the words before (`before`) and at (`y`) each place, `real` where there
        is one (all (B, T)), and `place`."""
        said = self.said[captions]
        before = np.concatenate([np.full((len(said), 1), END), said[:, :-1]], axis=1)
        real = np.arange(said.shape[1]) < self.lengths[captions, None]
        found = {"x": self.regions[self.picture[captions]], "before": before, "y": said, "real": real,
                 "place": self.places[captions]}  # fmt: skip
        return {name: torch.from_numpy(array) for name, array in found.items()}

    def references(self) -> dict[int, list[tuple[int, ...]]]:
        """What was said about each picture, as ids without END."""
        found: dict[int, list[tuple[int, ...]]] = {}
        for picture, said, length in zip(self.picture.tolist(), self.said.tolist(), self.lengths, strict=True):
            found.setdefault(picture, []).append(tuple(said[: length - 1]))
        return found


@dataclass(frozen=True, kw_only=True)
class Captioned:
    """What was read."""

    where: str
    splits: dict[str, Split]
    vocabulary: tuple[str, ...]
    grid: tuple[int, int] | None = None
    """Rows and columns that the regions lie in, where they do."""
    cell: int = 0
    """Pixels along the side of a region whose features begin with its picture, red, green and blue; 0: they do not."""

    @property
    def segments(self) -> int:
        """m."""
        return int(self.splits["train"].regions.shape[1])

    @property
    def features(self) -> int:
        """d."""
        return int(self.splits["train"].regions.shape[2])

    def picture(self, regions: np.ndarray) -> list[list[list[int]]] | None:
        """Regions (m, d) as a picture, pixels red, green and blue from 0 to 255; None where they show none."""
        if self.grid is None or not self.cell:
            return None
        (rows, columns), side = self.grid, self.cell
        cells = regions[:, : 3 * side * side].reshape(rows, columns, side, side, 3)
        pixels = cells.transpose(0, 2, 1, 3, 4).reshape(rows * side, columns * side, 3)
        return np.rint(255 * np.clip(pixels, 0, 1)).astype(int).tolist()


def coded(captions: Iterable[Sequence[str]], least: int = 1) -> tuple[str, ...]:
    """The vocabulary: END, UNKNOWN, then the words that were said so often at least, sorted."""
    counts = Counter(word for words in captions for word in words)
    return ("<end>", "<unknown>", *sorted(word for word, count in counts.items() if count >= least))
