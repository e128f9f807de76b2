"""Documents that a run has not learned from, and their truth as its classes: what judges it and calibrates it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from neural.core.names import did_you_mean
from neural.segmenting import Cutter, segmentation_of
from neural.tasks.cutting.collection import NAMES, collection
from neural.tasks.cutting.document import Document
from neural.tasks.cutting.duplicates import (
    document_hash,
    list_names,
    shared_elements,
    shared_note,
)
from neural.tasks.cutting.prepared import fingerprint
from neural.tasks.cutting.reader import Reading
from neural.tasks.cutting.settings import SegmentationSettings
from neural.tasks.segmentation import documents_of
from neural.tasks.task import TaskError
from neural.tracking.run import Run


@dataclass(frozen=True, kw_only=True)
class HeldOut:
    """Documents, and where they come from."""

    documents: tuple[Document, ...]
    where: str
    """In words: `20 documents of the test part of handbook`."""
    training: tuple[np.ndarray, ...]
    """True boundaries of what was learned from; where that is gone, those of the documents themselves."""
    labels: tuple[str, ...] = ()
    """The words that labels stand for, in the order of their numbers."""
    remarks: tuple[str, ...] = ()

    @property
    def truths(self) -> list[np.ndarray]:
        """Where parts begin."""
        return [one.boundaries for one in self.documents]


def held_out(
    run: Run, wanted: Literal["test", "valid"], data: str | None = None, *, allow_duplicates: bool = False
) -> HeldOut:
    """The part of the run's documents that is asked for; the validation part where there is no test part.

    `data` are other documents, a file or a folder: all of them, or their own part of that name. Documents among them
    that were learned from are refused, unless `allow_duplicates`.
    """
    settings = segmentation_of(run)
    if data is not None and not _the_same(data, settings):
        return _of_others(data, wanted, settings, run, allow_duplicates=allow_duplicates)
    found = documents_of(settings, home(run))
    if settings.fingerprint and fingerprint((*found.train, *found.valid)) != settings.fingerprint:
        raise TaskError(
            f"{found.name} is not what {run.name} was begun with: its documents changed, so some may have been learned "
            "from; put the old ones back, or name others with --data"
        )
    part, documents = ("test", found.test) if wanted == "test" and found.test else ("validation", found.valid)
    if not documents:
        raise TaskError(f"{run.name} has no documents that it did not learn from; name some with --data")
    remarks = list(found.remarks)
    if part != wanted and wanted == "test":
        remarks.append("there is no test part: these documents chose the checkpoint, so the scores flatter it")
    return HeldOut(
        documents=documents, where=f"{_count(documents)} of the {part} part of {found.name}", remarks=tuple(remarks),
        training=tuple(one.boundaries for one in found.train), labels=found.labels,
    )  # fmt: skip


def targets_of(held: HeldOut, cutter: Cutter) -> list[np.ndarray] | None:
    """The class of every element as the run numbers them, where labels were learned and are there; else None."""
    if cutter.learned != "labels" or any(one.labels is None for one in held.documents):
        return None
    known = {name: number for number, name in enumerate(cutter.labels)}
    found = []
    for one in held.documents:
        assert one.labels is not None
        called = [held.labels[label] if 0 <= label < len(held.labels) else str(label) for label in one.labels.tolist()]
        strange = next((name for name in called if name not in known), None)
        if strange is not None:
            help_ = did_you_mean(strange, known) or f"{cutter.name} knows {', '.join(known)}"
            raise TaskError(f"{one.name}: the label `{strange}` was never learned; {help_}")
        found.append(np.array([known[name] for name in called], dtype=np.int64))
    return found


def _of_others(
    data: str, wanted: str, settings: SegmentationSettings, run: Run, *, allow_duplicates: bool
) -> HeldOut:
    reading = Reading(settings.elements, settings.told_by)
    found = collection(data, Path(), reading=reading, valid=0, test=0, allow_duplicates=True)
    own = found.test if wanted == "test" else found.valid
    documents, remarks = own or found.documents, list(found.remarks)
    if len(documents) < len(found.documents):
        remarks.append(f"of {len(found.documents):,} documents, only those of the part `{wanted}` are used")
    learned = None
    try:
        learned = documents_of(settings, home(run))
        if settings.fingerprint and fingerprint((*learned.train, *learned.valid)) != settings.fingerprint:
            learned = None
    except TaskError:
        pass
    if learned is None:
        remarks.append("what the run learned from is gone: `every_k` takes its k from the documents that judge")
    hashes = run.described("data/document_hashes") or (learned.hashes() if learned else None)
    if hashes is None:
        remarks.append("an older run, whose training documents are gone: nothing tells whether these are among them")
    else:
        remarks += _check_learned(documents, hashes, wanted, run.name, allow=allow_duplicates)
    if learned is not None:
        remarks += shared_note(found.name, shared_elements(documents, learned.train))
    training = learned.train if learned else documents
    return HeldOut(
        documents=documents, where=f"{_count(documents)} of {found.name}", remarks=tuple(remarks), labels=found.labels,
        training=tuple(one.boundaries for one in training),
    )  # fmt: skip


def _check_learned(
    documents: Sequence[Document], hashes: Mapping[str, Sequence[str]], wanted: str, run: str, *, allow: bool
) -> list[str]:
    """Refuse documents that the run was trained with, or say which they are."""
    own = [(document.name, document_hash(document)) for document in documents]
    training, validation = (
        [name for name, digest in own if digest in known]
        for known in (set(hashes.get(part) or ()) for part in ("train", "valid"))
    )
    notes = []
    if training:
        message = f"{len(training):,} of {_count(documents)} were learned from by {run}: {list_names(training)}"
        if not allow:
            raise TaskError(f"{message}; remove them, or use --allow-duplicates")
        notes.append(f"{message}; the scores flatter")
    if wanted == "test" and validation:
        notes.append(f"{len(validation):,} of {_count(documents)} chose the checkpoint, so the scores flatter it")
    return notes


def home(run: Run) -> Path:
    """The folder that a run was begun in."""
    return Path(run.environment.get("folder", "."))


def _the_same(data: str, settings: SegmentationSettings) -> bool:
    """Whether these are the documents that the run was trained with: then only what it held out is new to it."""
    return data == settings.data if data in NAMES else Path(data).absolute() == Path(settings.data)


def _count(documents: Sequence[Document]) -> str:
    return f"{len(documents):,} document{'s' * (len(documents) != 1)}"
