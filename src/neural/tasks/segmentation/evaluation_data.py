"""Documents with known segments, for evaluation and calibration: held-out ones of a run, or others.

Boundaries are boolean arrays: True at the elements (sentences or lines) where a segment begins. A
run is the folder of one training. A split is the training, validation or test part of the data. The
fingerprint in the settings of a run is a hash of its training and validation documents. Notes are
warnings for the user.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from neural.core.errors import TaskError
from neural.core.names import suggest_name
from neural.tasks.segmentation.collate import fingerprint_documents
from neural.tasks.segmentation.collection import (
    NAMED_COLLECTIONS,
    DocumentCollection,
    load_collection,
)
from neural.tasks.segmentation.document import SegmentationDocument
from neural.tasks.segmentation.duplicates import (
    format_names,
    format_overlap_note,
    hash_document,
    measure_overlap,
)
from neural.tasks.segmentation.pipeline import SegmentationPipeline, load_segmentation_settings
from neural.tasks.segmentation.reader import LayoutHandling, ReaderOptions
from neural.tasks.segmentation.settings import SegmentationSettings
from neural.tasks.task import TrainedRun


@dataclass(frozen=True, kw_only=True)
class EvaluationData:
    """Documents with known segments that a model was not trained on."""

    documents: tuple[SegmentationDocument, ...]
    description: str
    """For messages: `20 documents of the test split of handbook`."""
    training_boundaries: tuple[np.ndarray, ...]
    """Boundaries of the training documents, for baselines that take parameters from them.

    If the training documents are missing, those of `documents`.
    """
    labels: tuple[str, ...] = ()
    """Names of text labels, in the order of their ids."""
    notes: tuple[str, ...] = ()

    @property
    def truths(self) -> list[np.ndarray]:
        """Annotated boundaries of each document."""
        return [document.boundaries for document in self.documents]


def load_evaluation_data(
    run: TrainedRun,
    split: Literal["test", "valid"],
    data: str | None = None,
    *,
    layout: LayoutHandling | None = None,
    allow_duplicates: bool = False,
) -> EvaluationData:
    """Documents of a split of the run's data; the validation split if there is no test split.

    If `data` names another file or folder, its documents are used instead: those of the split if it
    has one, else all. `layout` replaces the setting of the run for them. TaskError if training
    documents of the run are among them, unless `allow_duplicates`.
    """
    settings = load_segmentation_settings(run)
    if data is not None and not _is_training_data(data, settings):
        settings = settings.model_copy(update={"layout": layout or settings.layout})
        return _load_other_data(data, split, settings, run, allow_duplicates=allow_duplicates)
    if layout not in (None, settings.layout):
        raise TaskError(
            f"{run.name} was trained with `layout: {settings.layout}`, as were its documents; "
            "name other documents with --data"
        )
    collection = load_task_documents(settings, run.working_folder)
    if not _has_training_documents(collection, settings):
        raise TaskError(
            f"{collection.name} is not what {run.name} was started with: its documents changed, "
            "so some may be training documents; put the old ones back, or name others with --data"
        )
    split_name, documents = (
        ("test", collection.test)
        if split == "test" and collection.test
        else ("validation", collection.valid)
    )
    if not documents:
        raise TaskError(f"{run.name} has no held-out documents; name some with --data")
    notes = list(collection.notes)
    if split_name != split and split == "test":
        notes.append(
            "there is no test split: these documents selected the checkpoint, "
            "so the scores are too good"
        )
    return EvaluationData(
        documents=documents,
        description=f"{_format_count(documents)} of the {split_name} split of {collection.name}",
        notes=tuple(notes),
        training_boundaries=tuple(document.boundaries for document in collection.train),
        labels=collection.labels,
    )


def encode_labels(data: EvaluationData, pipeline: SegmentationPipeline) -> list[np.ndarray] | None:
    """Class index of every element of each document, in the order of `pipeline.labels`.

    None if the pipeline does not predict labels, or a document has none. TaskError for a label that
    is not in the pipeline.
    """
    if pipeline.target_kind != "labels" or any(
        document.labels is None for document in data.documents
    ):
        return None
    class_ids = {name: index for index, name in enumerate(pipeline.labels)}
    targets = []
    for document in data.documents:
        assert document.labels is not None
        names = [
            data.labels[label] if 0 <= label < len(data.labels) else str(label)
            for label in document.labels.tolist()
        ]
        unknown = next((name for name in names if name not in class_ids), None)
        if unknown is not None:
            suggestion = (
                suggest_name(unknown, class_ids)
                or f"the labels of {pipeline.name} are {', '.join(class_ids)}"
            )
            raise TaskError(
                f"{document.name}: the label `{unknown}` is not in the training data; {suggestion}"
            )
        targets.append(np.array([class_ids[name] for name in names], dtype=np.int64))
    return targets


def _load_other_data(
    data: str,
    split: str,
    settings: SegmentationSettings,
    run: TrainedRun,
    *,
    allow_duplicates: bool,
) -> EvaluationData:
    """Documents of `data`, which is not the data of the run, checked against its training data."""
    options = ReaderOptions(settings.elements, settings.boundary_marker, settings.layout)
    collection, documents, notes = _load_split(data, split, options)
    # The training documents of the run, if they still exist unchanged.
    training: DocumentCollection | None = None
    try:
        training = load_task_documents(settings, run.working_folder)
        if not _has_training_documents(training, settings):
            training = None
    except TaskError:
        pass
    if training is None:
        notes.append(
            "the training documents of the run are missing: "
            "`every_k` takes its k from the evaluated documents"
        )
    # Runs save hashes of their documents, so overlap is detected even if the files are missing.
    hashes = run.metadata("data/document_hashes") or (
        training.document_hashes() if training else None
    )
    if hashes is None:
        notes.append(
            "an older run without its training documents: "
            "it is unknown whether these are among them"
        )
    else:
        notes += _check_training_overlap(documents, hashes, split, run.name, allow=allow_duplicates)
    if training is not None:
        notes += format_overlap_note(collection.name, measure_overlap(documents, training.train))
    training_documents = training.train if training else documents
    return EvaluationData(
        documents=documents,
        description=f"{_format_count(documents)} of {collection.name}",
        notes=tuple(notes),
        labels=collection.labels,
        training_boundaries=tuple(document.boundaries for document in training_documents),
    )


def load_unseen_data(data: str, options: ReaderOptions) -> EvaluationData:
    """Documents of a file or folder for a model whose training data is not at hand.

    They are those of the test split if the data has one, else all. Baselines take their parameters
    from the same documents.
    """
    collection, documents, notes = _load_split(data, "test", options)
    notes.append("`every_k` takes its k from the evaluated documents")
    return EvaluationData(
        documents=documents,
        description=f"{_format_count(documents)} of {collection.name}",
        notes=tuple(notes),
        labels=collection.labels,
        training_boundaries=tuple(document.boundaries for document in documents),
    )


def _load_split(
    data: str, split: str, options: ReaderOptions
) -> tuple[DocumentCollection, tuple[SegmentationDocument, ...], list[str]]:
    """All documents of `data`, those of the split (all without one), and notes about them."""
    collection = load_collection(
        data, Path(), options=options, valid=0, test=0, allow_duplicates=True
    )
    own_split = collection.test if split == "test" else collection.valid
    documents, notes = own_split or collection.documents, list(collection.notes)
    if len(documents) < len(collection.documents):
        notes.append(
            f"of {len(collection.documents):,} documents, "
            f"only those of the split `{split}` are used"
        )
    return collection, documents, notes


def _has_training_documents(collection: DocumentCollection, settings: SegmentationSettings) -> bool:
    """True if the documents are those that the run was started with, or if that is unknown."""
    return (
        not settings.fingerprint
        or fingerprint_documents((*collection.train, *collection.valid)) == settings.fingerprint
    )


def _check_training_overlap(
    documents: Sequence[SegmentationDocument],
    hashes: Mapping[str, Sequence[str]],
    split: str,
    run: str,
    *,
    allow: bool,
) -> list[str]:
    """TaskError if training documents of the run are evaluated; if `allow`, a note instead.

    `hashes` are the document hashes of the run's splits `train` and `valid`; `run` is its name.
    """
    names_and_digests = [(document.name, hash_document(document)) for document in documents]
    training, validation = (
        [name for name, digest in names_and_digests if digest in run_hashes]
        for run_hashes in (set(hashes.get(key) or ()) for key in ("train", "valid"))
    )
    notes = []
    if training:
        message = (
            f"{len(training):,} of {_format_count(documents)} are training documents of {run}: "
            f"{format_names(training)}"
        )
        if not allow:
            raise TaskError(f"{message}; remove them, or use --allow-duplicates")
        notes.append(f"{message}; the scores are too good")
    if split == "test" and validation:
        notes.append(
            f"{len(validation):,} of {_format_count(documents)} selected the checkpoint, "
            "so the scores are too good"
        )
    return notes


def _is_training_data(data: str, settings: SegmentationSettings) -> bool:
    """True if `data` is the data that the run was trained on."""
    return (
        data == settings.data
        if data in NAMED_COLLECTIONS
        else Path(data).absolute() == Path(settings.data)
    )


def _format_count(documents: Sequence[SegmentationDocument]) -> str:
    return f"{len(documents):,} document{'s' * (len(documents) != 1)}"


def load_task_documents(settings: SegmentationSettings, folder: Path) -> DocumentCollection:
    """Load and split the documents that the settings name."""
    try:
        return load_collection(
            settings.data,
            folder,
            options=ReaderOptions(settings.elements, settings.boundary_marker, settings.layout),
            compose=settings.compose,
            valid=settings.validation_split,
            test=settings.test_split,
            seed=settings.split_seed,
            allow_duplicates=settings.allow_duplicates,
        )
    except TaskError as error:
        prefix = "the documents of the run are missing: " if settings.fingerprint else ""
        raise TaskError(f"{prefix}{error}") from None
