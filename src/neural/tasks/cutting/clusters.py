"""What goes right and wrong together: the elements of a document, and all that comes from one source.

Documents that were composed share their sources, so a hundred documents made of ten texts say little more about other
texts than ten do. `Clusters.of` knows the sources of what `compose` made. Of other documents it finds them: parts of
different documents that have two neighbouring elements in common come from one source. (Of Choi's 300 documents of
3,000 parts it finds the 124 texts that they were made of.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from neural.tasks.cutting.document import Document
from neural.tasks.cutting.duplicates import normalize

MIN_SHARED_CHARACTERS = 40
"""Of two neighbouring elements: what is shorter may be equal by chance."""

Ids = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Clusters:
    """Documents, and which source each of their elements comes from where sources are shared."""

    documents: int
    sources: tuple[Ids, ...] | None = None
    """Per document, the number of every element's source; None where no source is in two documents."""
    shared: int = 0
    """Sources that are in two documents or more."""

    def __str__(self) -> str:
        """As messages say it: `20 documents and 8 shared sources`."""
        documents = f"{self.documents:,} document{'s' * (self.documents != 1)}"
        if not self.shared:
            return documents
        return f"{documents} and {self.shared:,} shared source{'s' * (self.shared != 1)}"

    @classmethod
    def of(cls, documents: Sequence[Document]) -> Clusters:
        """Sources as `compose` noted them, else as shared text shows them."""
        parts, homes = [], []
        for number, document in enumerate(documents):
            for start, stop in _parts(document):
                parts.append((number, start, stop))
                homes.append(_keys(document, start, stop))
        ids = _connected(homes)
        sources = [np.zeros(len(document), dtype=np.int64) for document in documents]
        inside: dict[int, set[int]] = {}
        for (number, start, stop), source in zip(parts, ids, strict=True):
            sources[number][start:stop] = source
            inside.setdefault(source, set()).add(number)
        shared = sum(len(numbers) > 1 for numbers in inside.values())
        return cls(len(documents), tuple(sources) if shared else None, shared)

    def pairs(self, *, gaps: bool) -> tuple[Ids, Ids] | None:
        """The sources that an element depends on, of all documents in a row; None where none are shared.

        `gaps`: an element is asked whether a part begins there, which depends on the element before it, too; the first
        of each document is not asked.
        """
        if self.sources is None:
            return None
        first = np.concatenate([ids[:-1] if gaps else ids for ids in self.sources])
        return first, np.concatenate([ids[1:] if gaps else ids for ids in self.sources])


def _parts(document: Document) -> list[tuple[int, int]]:
    """First and last element (excluded) of every part, or of every run from one source."""
    if document.sources is None:
        changes = np.flatnonzero(document.boundaries)
    else:
        changes = [at for at, (a, b) in enumerate(pairwise(document.sources), start=1) if a != b]
    edges = [0, *(int(at) for at in changes if at), len(document)]
    return list(pairwise(edges))


def _keys(document: Document, start: int, stop: int) -> list[str]:
    """What another part of the same source has as well."""
    if document.sources is not None:
        return [f"source {document.sources[start]}"]
    elements = [normalize(element) for element in document.elements[start:stop]]
    runs = [f"{a}\n{b}" for a, b in pairwise(elements)] or elements
    return [run for run in runs if len(run) > MIN_SHARED_CHARACTERS]


def _connected(homes: Sequence[Sequence[str]]) -> list[int]:
    """Parts that have a key in common get one number, from 0 on; union–find."""
    parents = list(range(len(homes)))

    def root(part: int) -> int:
        while parents[part] != part:
            parents[part] = parents[parents[part]]
            part = parents[part]
        return part

    owners: dict[str, int] = {}
    for part, keys in enumerate(homes):
        for key in keys:
            parents[root(part)] = root(owners.setdefault(key, part))
    numbers: dict[int, int] = {}
    return [numbers.setdefault(root(part), len(numbers)) for part in range(len(homes))]
