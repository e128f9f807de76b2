"""Choi's format: an element per line, parts between lines of `==========`."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from neural.tasks.cutting.document import Document, joined
from neural.tasks.cutting.reader import Reader, Reading
from neural.tasks.cutting.reading import read_raw
from neural.tasks.task import TaskError

SEPARATOR = "=" * 10
"""A line of at least so many."""


class Ref(Reader):
    """One document per file; blank lines do not count."""

    looks: ClassVar[str] = "a .ref file, or a folder of them: an element per line, parts between lines of =========="
    suffixes: ClassVar[tuple[str, ...]] = (".ref",)

    @classmethod
    def read(cls, path: Path, reading: Reading) -> tuple[list[Document], list[str]]:
        """The lines between separators; the elements are lines, whatever else was asked for."""
        raw = read_raw(path)
        sections: list[list[str]] = [[]]
        for line in raw.text.removeprefix("\ufeff").splitlines():
            stripped = line.strip()
            if stripped.startswith(SEPARATOR) and not stripped.strip("="):
                sections.append([])
            elif stripped:
                sections[-1].append(stripped)
        if not any(sections):
            raise TaskError(f"{path.name} has separators and no elements between them")
        return [joined(path.stem, sections)], list(raw.remarks)
