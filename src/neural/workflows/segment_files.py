"""Texts for `neural segment`: files, folders of files, rows of JSONL files, standard input."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from neural.core.errors import TaskError, describe_os_error
from neural.core.files import format_read_error
from neural.core.json_values import parse_json
from neural.tasks.segmentation.text_source import (
    TextSource,
    make_text_source,
    open_text_source,
    spool_text_source,
)

TEXT_SUFFIXES = (
    ".txt",
    ".text",
    ".md",
    ".markdown",
    ".rst",
    ".html",
    ".htm",
    ".xhtml",
    ".adoc",
    ".org",
)
"""Files that are read from a folder."""
ROWS_SUFFIX = ".jsonl"
STANDARD_INPUT = "standard input"


@dataclass(frozen=True)
class TextInput:
    """A text to segment; it is read when `open` is called, which raises TaskError if it is bad."""

    name: str
    """Name in the output: of the file, or of the row as `rows.jsonl:3`."""
    suffix: str
    """That of the file, in lower case."""
    open: Callable[[], TextSource]


@dataclass(frozen=True)
class InputFile:
    """A file with one text, or with a text per row."""

    path: Path | None
    """None for standard input."""
    name: str
    """File name; for a file of a folder, its path in the folder."""
    field: str = "text"
    """Key of the texts in the rows."""
    source: str = ""
    """Name in the output, if another file has the same `name`."""

    @property
    def has_rows(self) -> bool:
        """True for a JSONL file."""
        return self.path is not None and self.path.suffix.lower() == ROWS_SUFFIX

    @property
    def size(self) -> int:
        """Length in bytes; 0 if unknown."""
        try:
            return self.path.stat().st_size if self.path is not None else 0
        except OSError:
            return 0

    def read_texts(self) -> Iterator[TextInput]:
        """The texts of the file, in order. TaskError if the file cannot be read."""
        path = self.path
        if path is None:
            yield TextInput(self.name, "", lambda: spool_text_source(sys.stdin.buffer, self.name))
        elif self.has_rows:
            yield from self._read_rows(path)
        else:
            name = self.source or self.name
            yield TextInput(name, path.suffix.lower(), lambda: open_text_source(path, name))

    def _read_rows(self, path: Path) -> Iterator[TextInput]:
        name = self.source or self.name
        try:
            with path.open("rb") as file:
                for number, line in enumerate(file, start=1):
                    if line.strip():
                        yield TextInput(f"{name}:{number}", "", self._make_opener(number, line))
        except OSError as error:
            raise TaskError(format_read_error(path, error)) from None

    def _make_opener(self, number: int, line: bytes) -> Callable[[], TextSource]:
        name = self.source or self.name
        return lambda: make_text_source(
            _parse_row(line, self.field, f"{name}, line {number}"), f"{name}:{number}"
        )


def _parse_row(line: bytes, field: str, place: str) -> str:
    """The text of a row. TaskError with its place if there is none."""
    try:
        row = parse_json(line.decode())
    except UnicodeDecodeError as error:
        raise TaskError(f"{place}: it is not UTF-8 (byte {error.start:,})") from None
    except ValueError as error:
        raise TaskError(f"{place}: it is not JSON: {error}") from None
    if not isinstance(row, dict):
        raise TaskError(f"{place}: it is not an object with the key `{field}`")
    if field not in row:
        keys = ", ".join(f"`{key}`" for key in list(row)[:5])
        raise TaskError(f"{place}: there is no key `{field}`, only {keys}; name one with --field")
    if not isinstance(row[field], str):
        raise TaskError(f"{place}: `{field}` is not a text but a {type(row[field]).__name__}")
    return row[field]


def find_input_files(names: Sequence[str], field: str = "text") -> list[InputFile]:
    """Files of the arguments; `-` is standard input, a folder stands for the texts in it.

    Files of the same name have their path as their name in the output.
    TaskError for a folder without texts.
    """
    files = []
    for name in names:
        path = Path(name)
        if name == "-":
            files.append(InputFile(None, STANDARD_INPUT))
        elif path.is_dir():
            files += _find_files_of_folder(path, field)
        else:
            files.append(InputFile(path, path.name, field))
    counts = Counter(file.name for file in files)
    return [
        file
        if counts[file.name] == 1 or file.path is None
        else replace(file, source=file.path.as_posix())
        for file in files
    ]


def _find_files_of_folder(folder: Path, field: str) -> list[InputFile]:
    try:
        paths = sorted(
            path
            for path in folder.rglob("*")
            if path.suffix.lower() in (*TEXT_SUFFIXES, ROWS_SUFFIX)
            and path.is_file()
            and not any(part.startswith(".") for part in path.relative_to(folder).parts)
        )
    except OSError as error:
        raise TaskError(f"{folder} cannot be read: {describe_os_error(error)}") from None
    if not paths:
        raise TaskError(
            f"the folder {folder} has no texts: files whose names end in "
            f"{', '.join((*TEXT_SUFFIXES, ROWS_SUFFIX))}"
        )
    return [InputFile(path, path.relative_to(folder).as_posix(), field) for path in paths]
