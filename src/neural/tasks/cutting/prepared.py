"""Documents → examples: features, what is to be learned from each element, and what the inputs look like on average."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np

from neural.tasks.cutting.described import features
from neural.tasks.cutting.document import Document
from neural.tasks.cutting.packed import Example
from neural.tasks.cutting.settings import Learned
from neural.tasks.task import TaskError

BEGINS = ("goes on", "begins")
"""The classes where boundaries are learned."""


@dataclass(frozen=True)
class Classes:
    """What is learned, and what its classes are called."""

    learned: Learned
    names: tuple[str, ...]
    numbers: tuple[int, ...] = ()
    """The label that each class is in the data."""

    @classmethod
    def of(cls, documents: Sequence[Document], wanted: Learned | None, names: Sequence[str], where: str) -> Classes:
        """As asked, or labels where every document has them; TaskError where there is nothing to tell apart."""
        without = [one for one in documents if one.labels is None]
        learned: Learned = wanted or ("boundaries" if without else "labels")
        if learned == "labels" and without:
            raise TaskError(f"{where}: {without[0].name} has no labels; write `learn: boundaries`")
        if not any(one.boundaries.any() for one in documents):
            raise TaskError(f"{where}: not one boundary in {len(documents):,} documents, so there is nothing to learn")
        if learned == "boundaries":
            return cls(learned, BEGINS)
        numbers = np.unique(np.concatenate([one.labels for one in documents if one.labels is not None])).tolist()
        called = [names[one] if 0 <= one < len(names) else str(one) for one in numbers]
        return cls(learned, tuple(called), tuple(numbers))

    def target(self, document: Document) -> np.ndarray:
        """The class of every element."""
        if self.learned == "boundaries" or document.labels is None:
            return document.boundaries.astype(np.int64)
        return np.searchsorted(self.numbers, document.labels)


def examples_of(
    documents: Sequence[Document], names: Sequence[str], classes: Classes, *, first: int = 0
) -> list[Example]:
    """Each document as numbers, the first one called `first`. Features are computed once and kept on disk."""
    return [
        Example(first + number, 0, features(one, names, keep=True), classes.target(one), one.boundaries)
        for number, one in enumerate(documents)
    ]


def usual(examples: Sequence[Example]) -> tuple[np.ndarray, np.ndarray]:
    """Mean and deviation of every input over all elements; a deviation of 1 for one that never changes."""
    count = sum(len(one) for one in examples)
    mean = np.sum([one.x.sum(axis=0, dtype=np.float64) for one in examples], axis=0) / count
    spread = np.sqrt(np.sum([np.square(one.x - mean).sum(axis=0) for one in examples], axis=0) / count)
    return mean.astype(np.float32), np.where(spread > 1e-6, spread, 1).astype(np.float32)


def fingerprint(documents: Sequence[Document]) -> str:
    """Of their elements and what is known about them."""
    digest = blake2b(digest_size=16)
    for one in documents:
        truth = one.boundaries if one.labels is None else one.labels
        for part in (*(element.encode("utf-8", "surrogatepass") for element in one.elements), truth.tobytes()):
            digest.update(len(part).to_bytes(8, "little"))
            digest.update(part)
    return digest.hexdigest()
