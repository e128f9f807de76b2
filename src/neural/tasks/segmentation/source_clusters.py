"""Sources that documents share, as recorded or detected by text that two documents have in common.

The jackknife leaves out whole documents and whole sources (stats/jackknife.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from neural.stats.jackknife import IdArray
from neural.tasks.segmentation.document import SegmentationDocument
from neural.tasks.segmentation.duplicates import normalize_text

MIN_SHARED_CHARACTERS = 40
"""Only longer texts that two documents share prove a common source; shorter ones may be chance."""


@dataclass(frozen=True, eq=False)
class SourceClusters:
    """Documents, and the source of each of their elements if documents share sources."""

    document_count: int
    source_ids: tuple[IdArray, ...] | None = None
    """Per document, the source id of every element; None if no source is in two documents."""
    shared_count: int = 0
    """Number of sources that are in at least two documents."""

    def __str__(self) -> str:
        """For messages: `20 documents and 8 shared sources`."""
        documents = f"{self.document_count:,} document{'s' * (self.document_count != 1)}"
        if not self.shared_count:
            return documents
        return (
            f"{documents} and {self.shared_count:,} shared source{'s' * (self.shared_count != 1)}"
        )

    @classmethod
    def from_documents(cls, documents: Sequence[SegmentationDocument]) -> SourceClusters:
        """Sources as recorded in `document.sources`, else detected by text that documents share."""
        # A run is a sequence of neighbouring elements from one source. Runs with a common key have
        # the same source.
        runs, keys_by_run = [], []
        for index, document in enumerate(documents):
            for start, stop in _find_source_runs(document):
                runs.append((index, start, stop))
                keys_by_run.append(_shared_text_keys(document, start, stop))
        run_sources = _connect_components(keys_by_run)
        source_ids = [np.zeros(len(document), dtype=np.int64) for document in documents]
        documents_by_source: dict[int, set[int]] = {}
        for (index, start, stop), source in zip(runs, run_sources, strict=True):
            source_ids[index][start:stop] = source
            documents_by_source.setdefault(source, set()).add(index)
        shared_count = sum(len(indices) > 1 for indices in documents_by_source.values())
        return cls(len(documents), tuple(source_ids) if shared_count else None, shared_count)

    def source_pairs(self, *, gaps: bool) -> tuple[IdArray, IdArray] | None:
        """The two sources that each row depends on, (rows,) each; None if no sources are shared.

        Without `gaps`, rows are elements, which have one source; it is in both arrays. With `gaps`,
        rows are boundary decisions: each depends on an element and the one before it, and the first
        element of a document has no row.
        """
        if self.source_ids is None:
            return None
        previous = np.concatenate([ids[:-1] if gaps else ids for ids in self.source_ids])
        return previous, np.concatenate([ids[1:] if gaps else ids for ids in self.source_ids])


def _find_source_runs(document: SegmentationDocument) -> list[tuple[int, int]]:
    """(start, stop) of each run of elements from one source.

    If the sources are unknown, each segment is taken as a run.
    """
    if document.sources is None:
        changes = np.flatnonzero(document.boundaries)
    else:
        changes = [
            index
            for index, (previous, source) in enumerate(pairwise(document.sources), start=1)
            if previous != source
        ]
    edges = [0, *(int(change) for change in changes if change), len(document)]
    return list(pairwise(edges))


def _shared_text_keys(document: SegmentationDocument, start: int, stop: int) -> list[str]:
    """Keys of the run document.elements[start:stop]; runs with a common key have the same source.

    The key is the recorded source. Without one, the keys are the texts of all pairs of neighbouring
    elements, if long enough (`MIN_SHARED_CHARACTERS`).
    """
    if document.sources is not None:
        return [f"source {document.sources[start]}"]
    elements = [normalize_text(element) for element in document.elements[start:stop]]
    keys = [f"{first}\n{second}" for first, second in pairwise(elements)] or elements
    return [key for key in keys if len(key) > MIN_SHARED_CHARACTERS]


def _connect_components(keys_by_run: Sequence[Sequence[str]]) -> list[int]:
    """Source id of each run, from 0: runs with a common key are connected (union–find)."""
    parents = list(range(len(keys_by_run)))

    def find_root(run: int) -> int:
        while parents[run] != run:
            parents[run] = parents[parents[run]]
            run = parents[run]
        return run

    first_run_by_key: dict[str, int] = {}
    for run, keys in enumerate(keys_by_run):
        for key in keys:
            parents[find_root(run)] = find_root(first_run_by_key.setdefault(key, run))
    component_ids: dict[int, int] = {}
    return [
        component_ids.setdefault(find_root(run), len(component_ids))
        for run in range(len(keys_by_run))
    ]
