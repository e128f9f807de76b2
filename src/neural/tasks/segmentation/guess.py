"""Guess a segmentation experiment for documents with known segments.

A folder of texts is a collection of documents, not one long text, if it has at least MIN_DOCUMENTS
short files and most of them have several segments, separated by headings or blank lines. A single
text is never guessed to be a segmentation: there would be nothing to validate on.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from neural.core.errors import TaskError
from neural.core.experiment_guess import ExperimentGuess
from neural.tasks.segmentation.data import registry as readers
from neural.tasks.segmentation.data.plain import Plain
from neural.tasks.segmentation.document import SegmentationDocument
from neural.tasks.segmentation.reader import ReaderOptions

MIN_DOCUMENTS = 10
MAX_DOCUMENT_BYTES = 100_000
"""A folder with a longer text is a corpus, such as some novels."""
MIN_SEGMENTED_SHARE = 0.8
"""Share of the documents that must have two segments or more."""
MAX_LINE_CHARACTERS = 60
"""Lines that are shorter on average are elements of their own, as in songs."""
MARKED_CERTAINTY, TEXTS_CERTAINTY = 0.9, 0.7
"""Files in a format for segments are certain; texts with blank lines could be anything."""


def guess_segmentation(path: Path) -> ExperimentGuess | None:
    """A segmentation of the documents of a file or folder; None if it has none with segments."""
    files = sorted(file for file in (path, *path.rglob("*")) if file.is_file())
    for name in readers.names():
        reader = readers.get(name)
        own_files = [file for file in files if file.suffix.lower() in reader.suffixes]
        if not own_files:
            continue
        is_plain = reader is Plain
        if is_plain and (
            len(own_files) < MIN_DOCUMENTS
            or max(file.stat().st_size for file in own_files) > MAX_DOCUMENT_BYTES
        ):
            continue
        try:
            documents = [
                document for file in own_files for document in reader.read(file, ReaderOptions())[0]
            ]
        except TaskError:  # the files are something else, such as a table in JSON lines
            continue
        segmented = [document for document in documents if _count_segments(document) > 1]
        if documents and len(segmented) >= MIN_SEGMENTED_SHARE * len(documents):
            return _create_guess(path, documents, own_files if is_plain else ())
    return None


def _create_guess(
    path: Path, documents: Sequence[SegmentationDocument], plain_files: Sequence[Path]
) -> ExperimentGuess:
    """`plain_files` are the texts without a format of their own; their lines may be elements."""
    segments = sum(map(_count_segments, documents)) / len(documents)
    preset = "songs" if _has_short_lines(plain_files) or not plain_files else "articles"
    elements = "lines" if preset == "songs" else "sentences"
    marker = "separated by headings or blank lines" if plain_files else "marked in the file"
    return ExperimentGuess(
        settings={
            "task": "segmentation",
            "name": path.stem,
            "data": str(path),
            "preset": preset,
        },
        reasons=(
            f"{len(documents)} documents with {segments:.1f} segments on average, {marker}: "
            "a segmentation",
            f"preset {preset}: the elements are {elements}",
        ),
        certainty=TEXTS_CERTAINTY if plain_files else MARKED_CERTAINTY,
    )


def _count_segments(document: SegmentationDocument) -> int:
    return int(document.boundaries.sum()) + 1


def _has_short_lines(files: Sequence[Path]) -> bool:
    lengths = [
        len(line)
        for file in files
        for line in file.read_bytes().decode("utf-8", errors="replace").splitlines()
        if line.strip()
    ]
    return bool(lengths) and sum(lengths) / len(lengths) <= MAX_LINE_CHARACTERS
