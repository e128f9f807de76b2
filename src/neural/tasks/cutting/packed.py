"""Documents → batches: rows as long as the longest, what is missing filled up, and little of it.

Documents that go together are of about the same length. Which do, and in which order batches come, follows from the
seed and the batch's number alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from neural.modules.late import torch
from neural.tasks.data.order import Order
from neural.tasks.data.split import generator

if TYPE_CHECKING:
    from neural.tasks.task import Batch

BATCHES_TOGETHER = 8
"""So many batches are drawn together and their documents sorted by length."""


@dataclass(frozen=True)
class Example:
    """A document, or a piece of a long one, as numbers."""

    document: int
    """Which one, counted from 0."""
    first: int
    """The element it begins with."""
    x: np.ndarray
    """(elements, features)."""
    target: np.ndarray
    """A class per element."""
    boundaries: np.ndarray
    """True where a part begins."""

    def __len__(self) -> int:
        return len(self.x)

    def pieces(self, longest: int) -> Iterator[Example]:
        """Itself, or pieces of one size as nearly as can be, none longer than `longest`."""
        count = -(-len(self) // longest)
        edges = np.linspace(0, len(self), count + 1).astype(np.int64)
        for start, end in pairwise(edges.tolist()):
            part = slice(start, end)
            yield Example(
                self.document, self.first + part.start, self.x[part], self.target[part], self.boundaries[part]
            )


class ByLength(Order):
    """An order in which the documents of a batch are about as long as each other."""

    def __init__(self, lengths: Sequence[int], batch_size: int, seed: int) -> None:
        super().__init__(np.arange(len(lengths)), batch_size, seed)
        self.lengths = np.asarray(lengths)

    def shuffled(self, epoch: int) -> np.ndarray:
        """Shuffled, sorted by length within a few batches, and the batches shuffled again."""
        drawn = super().shuffled(epoch)[: self.epoch * self.size]
        room = self.size * BATCHES_TOGETHER
        groups = [drawn[start : start + room] for start in range(0, len(drawn), room)]
        drawn = np.concatenate([one[np.argsort(self.lengths[one], kind="stable")] for one in groups])
        batches = generator(self.seed, epoch, purpose=2).permutation(self.epoch)
        return drawn.reshape(self.epoch, self.size)[batches].reshape(-1)


def packed(examples: Sequence[Example]) -> Batch:
    """`x` (B, T, F), `mask`, `target` and `boundaries` (B, T), `document` and `first` (B,); zeros at padding."""
    rows, time = len(examples), max(len(one) for one in examples)
    x = np.zeros((rows, time, examples[0].x.shape[1]), np.float32)
    mask, boundaries = np.zeros((rows, time), bool), np.zeros((rows, time), bool)
    target = np.zeros((rows, time), np.int64)
    for row, one in enumerate(examples):
        size = len(one)
        x[row, :size], target[row, :size] = one.x, one.target
        boundaries[row, :size], mask[row, :size] = one.boundaries, True
    places = {"document": [one.document for one in examples], "first": [one.first for one in examples]}
    arrays = {"x": x, "mask": mask, "target": target, "boundaries": boundaries}
    return {name: torch.from_numpy(one) for name, one in arrays.items()} | {
        name: torch.tensor(one) for name, one in places.items()
    }


def in_batches(lengths: Sequence[int], most: int) -> Iterator[list[int]]:
    """All documents by number, the longest first, so many at a time that no batch has more than `most` elements.

    Padding counts; a document that is longer than that comes alone.
    """
    order = sorted(range(len(lengths)), key=lambda one: (-lengths[one], one))
    while order:
        together = max(1, most // lengths[order[0]])
        yield order[:together]
        order = order[together:]
