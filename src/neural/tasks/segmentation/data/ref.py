"""Reader of `.ref` files, the format of Choi's segmentation benchmark (2000).

Each line is one element of the document; lines of `==========` separate the segments.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from neural.core.errors import TaskError
from neural.tasks.segmentation.document import SegmentationDocument, join_segments
from neural.tasks.segmentation.reader import DocumentReader, ReaderOptions, read_text

MIN_SEPARATOR = "=" * 10
"""A separator is a line of at least this many `=`."""


class Ref(DocumentReader):
    """One document per file; blank lines are ignored."""

    description: ClassVar[str] = (
        "a .ref file, or a folder of them: an element per line, "
        "segments between lines of =========="
    )
    suffixes: ClassVar[tuple[str, ...]] = (".ref",)

    @classmethod
    def read(
        cls, path: Path, options: ReaderOptions
    ) -> tuple[list[SegmentationDocument], list[str]]:
        """Segments between separators. The elements are lines, whatever `options.unit` is."""
        raw = read_text(path)
        segments: list[list[str]] = [[]]
        for line in raw.text.removeprefix("\ufeff").splitlines():
            stripped = line.strip()
            if stripped.startswith(MIN_SEPARATOR) and not stripped.strip("="):
                segments.append([])
            elif stripped:
                segments[-1].append(stripped)
        if not any(segments):
            raise TaskError(f"{path.name} has separators and no elements between them")
        return [join_segments(path.stem, segments)], list(raw.notes)
