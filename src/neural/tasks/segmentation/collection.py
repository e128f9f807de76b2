"""Load the training, validation and test documents that an experiment names as `data`.

    load_collection("handbook")              composed of the help topics of Python; no download
    load_collection("songs.jsonl", folder)   a file, or a folder of files of one format
    load_collection("articles/", folder, compose=500)   500 documents composed of these articles

An element is a line or sentence of a document. A composed document joins random runs of elements
from several texts, its sources: the boundaries between them are known without annotation.

Splits are the training, validation and test documents. Files or folders called train, valid and
test are these splits. Other data is split at random by the seed, with equal documents in the same
split. Data that has the same document in two of its own splits raises TaskError, unless
`allow_duplicates`. Duplicates are whole documents with equal text; documents overlap if long
elements of one also occur in another (duplicates.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from neural.core.errors import TaskError
from neural.core.files import expand_home
from neural.core.names import suggest_name
from neural.data.sampler import create_generator
from neural.tasks.segmentation.data import registry
from neural.tasks.segmentation.document import SegmentationDocument, join_segments
from neural.tasks.segmentation.duplicates import (
    drop_overlapping,
    find_cross_split_duplicates,
    format_names,
    format_overlap_note,
    group_duplicates,
    hash_document,
    measure_overlap,
)
from neural.tasks.segmentation.reader import DocumentReader, ReaderOptions
from neural.tasks.segmentation.text_splitting import ElementUnit, find_elements

SPLIT_NAMES = {
    "train": ("train", "training"),
    "valid": ("valid", "val", "validation", "dev"),
    "test": ("test",),
}
"""Accepted names of the files and folders of each split."""
NAMED_COLLECTIONS = ("handbook",)
"""Collections that `data` may name instead of a path."""
DEFAULT_HANDBOOK_DOCUMENTS = 200
"""Number of documents composed of the handbook's topics if `compose` is 0."""
DEFAULT_SEGMENTS = 10
"""Number of segments in a composed document."""
SEGMENT_LENGTH_RANGE = (3, 11)
"""Minimum and maximum number of elements in a segment of a composed document."""
_COMPOSE_RNG_STREAM, _SPLIT_RNG_STREAM = 2, 3
"""Arguments `stream` of `create_generator`: different streams of one seed are independent."""


@dataclass(frozen=True)
class DocumentCollection:
    """Documents of the three splits; none is in two splits, unless that was allowed."""

    name: str
    """Name of the file or folder, or `handbook`; used in messages."""
    train: tuple[SegmentationDocument, ...]
    valid: tuple[SegmentationDocument, ...]
    test: tuple[SegmentationDocument, ...]
    notes: tuple[str, ...] = ()
    """Warnings for the user, one sentence each."""
    labels: tuple[str, ...] = ()
    """Text labels, by label id; empty if the labels are not text."""
    sources: tuple[tuple[SegmentationDocument, ...], ...] = ()
    """If documents are composed: the source texts of each split (train, valid, test)."""

    def document_hashes(self) -> dict[str, list[str]]:
        """Hashes of all texts of the splits `train` and `valid`: documents and their sources.

        They are saved with a run, to recognize training documents later.
        """
        sources = self.sources or ((), (), ())
        splits = {"train": (*self.train, *sources[0]), "valid": (*self.valid, *sources[1])}
        return {
            name: sorted({hash_document(document) for document in documents})
            for name, documents in splits.items()
        }

    @property
    def documents(self) -> tuple[SegmentationDocument, ...]:
        """Documents of all splits."""
        return self.train + self.valid + self.test


def load_collection(
    data: str | Path,
    folder: Path | None = None,
    *,
    options: ReaderOptions | None = None,
    compose: int = 0,
    valid: float = 0.1,
    test: float = 0.1,
    seed: int = 0,
    allow_duplicates: bool = False,
) -> DocumentCollection:
    """Load documents and split them. Paths are relative to `folder`. TaskError if there are none.

    If `compose` is above 0, the result is that many new documents, composed of the loaded ones;
    each split has its own sources. `valid` and `test` are the fractions of documents in these
    splits. `allow_duplicates` accepts data with the same document in two of its own splits.
    """
    options = options or ReaderOptions()
    if data in NAMED_COLLECTIONS:
        topics = drop_overlapping(
            [SegmentationDocument(name, elements) for name, elements in load_handbook(options.unit)]
        )
        splits = _split_documents(topics, valid, test, seed)
        return _compose_collection(
            "handbook", splits, compose or DEFAULT_HANDBOOK_DOCUMENTS, seed, ()
        )
    path = ((folder or Path()) / expand_home(data)).absolute()
    if not path.exists():
        suggestion = (
            suggest_name(str(data), NAMED_COLLECTIONS)
            or f"known by name: {', '.join(NAMED_COLLECTIONS)}"
        )
        raise TaskError(
            f"there is no data `{data}`: no such file or folder in {path.parent}; {suggestion}"
        )
    reader, files = _find_files(path)
    documents_by_split: dict[str, list[SegmentationDocument]] = {}
    notes: list[str] = []
    for file in files:
        documents, file_notes = reader.read(file, options)
        documents_by_split.setdefault(_find_split(file, path), []).extend(documents)
        notes += file_notes
    if "train" in documents_by_split:
        if unassigned := documents_by_split.get("", ()):
            notes.append(
                f"{path.name}: {len(unassigned)} documents outside train, valid and test "
                "are not used"
            )
        splits = [tuple(documents_by_split.get(split, ())) for split in SPLIT_NAMES]
        if not splits[1]:
            splits[:2] = _split_documents(splits[0], valid, 0, seed)[:2]
        notes += _check_duplicates(path.name, splits, allow=allow_duplicates)
    else:
        all_documents = tuple(
            document for documents in documents_by_split.values() for document in documents
        )
        splits = _split_documents(all_documents, valid, test, seed)
        duplicate_count = len(all_documents) - len(group_duplicates(all_documents))
        if duplicate_count and (splits[1] or splits[2]):
            notes.append(
                f"{path.name}: {duplicate_count:,} of {len(all_documents):,} documents are "
                "duplicates; equal documents are in one split"
            )
    notes += format_overlap_note(path.name, measure_overlap((*splits[1], *splits[2]), splits[0]))
    if compose:
        return _compose_collection(path.name, splits, compose, seed, tuple(notes))
    labels = tuple(options.label_ids)  # filled by the readers, in the order of the ids
    return DocumentCollection(path.name, *splits, notes=tuple(notes), labels=labels)


def load_documents(
    data: str | Path, folder: Path | None = None, *, options: ReaderOptions | None = None
) -> list[SegmentationDocument]:
    """All documents of a file or folder, ordered by file name; for `handbook`, composed ones."""
    return list(load_collection(data, folder, options=options, valid=0, test=0).documents)


def load_handbook(unit: ElementUnit = "sentences") -> list[tuple[str, tuple[str, ...]]]:
    """Name and elements of each topic of Python's `help()`; depends on the Python version."""
    from pydoc_data.topics import topics  # imported here, because it is half a megabyte

    return [
        (name, tuple(topics[name][start:end] for start, end in find_elements(topics[name], unit)))
        for name in sorted(topics)
    ]


def compose_documents(
    source_texts: Sequence[Sequence[str]],
    count: int,
    *,
    seed: int,
    segments: int = DEFAULT_SEGMENTS,
    length_range: tuple[int, int] = SEGMENT_LENGTH_RANGE,
) -> list[SegmentationDocument]:
    """Compose `count` documents; each segment is a run of elements from a different source.

    `source_texts` are the elements of each source. `length_range` is the minimum and maximum number
    of elements in a segment; shorter sources are not used. With fewer than `segments` usable
    sources, a document has one segment per source; with fewer than two, ValueError. The documents'
    field `sources` names, for each element, its source: its index as text.
    """
    usable = [index for index, source in enumerate(source_texts) if len(source) >= length_range[0]]
    if len(usable) < 2:
        raise ValueError(
            f"composing needs two texts of {length_range[0]} or more elements; "
            f"there are {len(usable)}"
        )
    return [
        _compose_document(
            source_texts,
            usable,
            index,
            create_generator(seed, index, stream=_COMPOSE_RNG_STREAM),
            segments,
            length_range,
        )
        for index in range(count)
    ]


def _check_duplicates(
    name: str, splits: Sequence[Sequence[SegmentationDocument]], *, allow: bool
) -> list[str]:
    """TaskError if a document is in two splits; if `allow`, a note that names it instead."""
    duplicates = find_cross_split_duplicates(dict(zip(SPLIT_NAMES, splits, strict=True)))
    if not duplicates:
        return []
    count = f"{len(duplicates):,} document{'s are' if len(duplicates) > 1 else ' is'}"
    message = f"{name}: {count} in two splits: {format_names(duplicates)}"
    if allow:
        return [f"{message}; the scores are too good"]
    raise TaskError(f"{message}; remove one of each, or write `allow_duplicates: true`")


def _find_files(path: Path) -> tuple[type[DocumentReader], list[Path]]:
    """Reader of the file format in `path`, and the files, ordered by name.

    TaskError unless there are files of exactly one format.
    """
    readers = [registry.get(name) for name in registry.names()]
    candidates = sorted(path.rglob("*")) if path.is_dir() else [path]
    visible = [file for file in candidates if file.is_file() and not _is_hidden(file, path)]
    files_by_reader = {
        reader: [file for file in visible if file.suffix.lower() in reader.suffixes]
        for reader in readers
    }
    matching = {reader: files for reader, files in files_by_reader.items() if files}
    if len(matching) == 1:
        return next(iter(matching.items()))
    if matching:
        examples = " and ".join(files[0].name for files in matching.values())
        raise TaskError(
            f"{path.name} has documents of several formats, such as {examples}; "
            "keep one format in a folder"
        )
    formats = "\n".join(f"  {reader.description}" for reader in readers)
    raise TaskError(
        f"{path.name} holds no documents that can be read; known formats are\n{formats}"
    )


def _is_hidden(file: Path, path: Path) -> bool:
    """True if the file or a folder between it and `path` has a name that begins with a dot."""
    return file != path and any(part.startswith(".") for part in file.relative_to(path).parts)


def _find_split(file: Path, path: Path) -> str:
    """Key of `SPLIT_NAMES` by the names of the file and its folders below `path`; "" if none."""
    parts = file.relative_to(path).with_suffix("").parts if file != path else ()
    lowercase_parts = {part.lower() for part in parts}
    return next((split for split, names in SPLIT_NAMES.items() if lowercase_parts & set(names)), "")


def _split_documents(
    documents: Sequence[SegmentationDocument], valid: float, test: float, seed: int
) -> list[tuple[SegmentationDocument, ...]]:
    """Training, validation and test documents; `valid` and `test` are fractions of distinct texts.

    Documents with equal text are in the same split. A fraction above 0 gives at least one text, as
    long as one is left to train on.
    """
    texts = group_duplicates(documents)  # indices of the documents of each distinct text
    order = create_generator(seed, 0, stream=_SPLIT_RNG_STREAM).permutation(len(texts))
    max_held_out = len(texts) - 1
    valid_count = min(max(1, round(len(texts) * valid)) if valid > 0 else 0, max_held_out)
    test_count = min(
        max(1, round(len(texts) * test)) if test > 0 else 0, max_held_out - valid_count
    )
    splits = np.split(order, [len(texts) - valid_count - test_count, len(texts) - test_count])
    return [
        tuple(
            documents[index] for index in sorted(index for text in split for index in texts[text])
        )
        for split in splits
    ]


def _compose_collection(
    name: str,
    splits: Sequence[Sequence[SegmentationDocument]],
    count: int,
    seed: int,
    notes: tuple[str, ...],
) -> DocumentCollection:
    """Compose about `count` documents, divided among the splits in proportion to their sizes.

    `splits` are the sources of each split; a split without sources has no documents.
    """
    total = sum(map(len, splits))
    composed = []
    for index, (split, sources) in enumerate(zip(SPLIT_NAMES, splits, strict=True)):
        split_count = max(1, round(count * len(sources) / total)) if sources else 0
        try:
            source_texts = [source.elements for source in sources]
            # A different seed for each of the three splits, never shared with another `seed`.
            composed.append(
                tuple(compose_documents(source_texts, split_count, seed=3 * seed + index))
                if split_count
                else ()
            )
        except ValueError as error:
            raise TaskError(f"{name}, {split}: {error}") from None
    return DocumentCollection(name, *composed, notes=notes, sources=tuple(map(tuple, splits)))


def _compose_document(
    source_texts: Sequence[Sequence[str]],
    usable: Sequence[int],
    index: int,
    rng: np.random.Generator,
    segments: int,
    length_range: tuple[int, int],
) -> SegmentationDocument:
    """Compose document number `index` of random runs of elements, each from another source.

    `usable` are the indices of the sources that are long enough.
    """
    chosen = [usable[position] for position in rng.permutation(len(usable))[:segments]]
    chunks = []
    for source in (source_texts[source_index] for source_index in chosen):
        length = min(int(rng.integers(length_range[0], length_range[1] + 1)), len(source))
        start = int(rng.integers(0, len(source) - length + 1))
        chunks.append(source[start : start + length])
    return join_segments(
        f"composed {index}", chunks, [str(source_index) for source_index in chosen]
    )
