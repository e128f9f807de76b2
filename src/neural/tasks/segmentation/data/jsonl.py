"""Reader of JSON Lines files, one document per line.

A line is `{"lines": [...], "labels": [...]}`, `{"lines": [...], "boundaries": [...]}` or
`{"title": "...", "parts": [{"title": "...", "paragraphs": [...]}]}`.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from neural.core.errors import TaskError
from neural.core.json_values import parse_json
from neural.core.names import suggest_name
from neural.tasks.segmentation.document import SegmentationDocument, join_segments
from neural.tasks.segmentation.reader import DocumentReader, ReaderOptions, read_text
from neural.tasks.segmentation.text_splitting import find_elements


class Jsonl(DocumentReader):
    """Reader of JSON Lines files.

    `lines` are the elements of the document, one string each. `labels` has a string or an integer
    per element; a segment begins where it changes. `boundaries` has true or 1 for each element
    where a segment begins (false or 0 for the others), or is a list of the indices of these
    elements, from 0.

    `parts` are the segments of a document, each with its `paragraphs`, whose sentences or lines are
    the elements. Titles of parts are left out, because they would reveal the boundaries. With the
    option `layout: keep` a part begins with its title as a heading, and blank lines separate the
    paragraphs.
    """

    description: ClassVar[str] = (
        "songs.jsonl: a document per line, with `lines` and `labels` or `boundaries`, "
        "or with `parts` of `paragraphs`"
    )
    suffixes: ClassVar[tuple[str, ...]] = (".jsonl", ".ndjson")

    @classmethod
    def read(
        cls, path: Path, options: ReaderOptions
    ) -> tuple[list[SegmentationDocument], list[str]]:
        """One document per line that is not blank. Errors name the line number."""
        raw = read_text(path)
        lines = enumerate(raw.text.removeprefix("\ufeff").split("\n"), start=1)
        documents = [
            _parse_document(line, f"{path.name}, line {number}", options)
            for number, line in lines
            if line.strip()
        ]
        return documents, list(raw.notes)


def _parse_document(line: str, location: str, options: ReaderOptions) -> SegmentationDocument:
    """Document of one JSON line. `location` is the file and line number, for messages."""
    try:
        row = parse_json(line)
    except ValueError as error:
        reason = (
            f" at column {error.colno}: {error.msg.lower()}"
            if isinstance(error, json.JSONDecodeError)
            else ""
        )
        raise TaskError(f"{location} is not valid JSON{reason}") from None
    if not isinstance(row, dict):
        raise TaskError(
            f"{location} must be an object with `lines` and `labels` or `boundaries`, "
            f"it is {_json_kind(row)}"
        )
    name = str(row.get("name") or row.get("title") or row.get("id") or location)
    if row.get("parts") is not None:
        parts = _parse_parts(row["parts"], location)
        if not any(paragraphs for _, paragraphs in parts):
            raise TaskError(f"{location}: `parts` have no text; remove the document")
        return _join_parts(name, parts, options)
    lines = row.get("lines")
    if not isinstance(lines, list) or not all(isinstance(line, str) for line in lines):
        suggestion = suggest_name("lines", row) if lines is None else None
        raise TaskError(
            f"{location}: `lines` must be a list of texts; "
            f"{suggestion or f'it is {_json_kind(lines)}'}"
        )
    if not lines:
        raise TaskError(f"{location}: `lines` is empty; remove the document")
    elements = tuple(" ".join(line.split()) for line in lines)
    if not options.require_segments:
        return SegmentationDocument(name, elements)
    if row.get("labels") is not None:
        return SegmentationDocument(
            name,
            elements,
            labels=_parse_labels(row["labels"], len(lines), location, options.label_ids),
        )
    if row.get("boundaries") is not None:
        return SegmentationDocument(
            name, elements, boundaries=_parse_boundaries(row["boundaries"], len(lines), location)
        )
    suggestion = (
        suggest_name("labels", row)
        or suggest_name("boundaries", row)
        or f"there are {', '.join(map(repr, row))}"
    )
    raise TaskError(f"{location}: `labels` or `boundaries` is needed; {suggestion}")


def _parse_parts(value: Any, location: str) -> list[tuple[str, list[str]]]:
    """Title and paragraphs of each part; white space is normalized, empty paragraphs left out."""
    if not isinstance(value, list):
        raise TaskError(f"{location}: `parts` must be a list, it is {_json_kind(value)}")
    parts = []
    for number, part in enumerate(value, start=1):
        paragraphs = part.get("paragraphs") if isinstance(part, dict) else None
        if not isinstance(paragraphs, list) or not all(
            isinstance(text, str) for text in paragraphs
        ):
            raise TaskError(
                f"{location}: part {number} must be an object with `paragraphs`, a list of texts"
            )
        texts = [" ".join(text.split()) for text in paragraphs]
        title = " ".join(str(part.get("title") or "").split())
        parts.append((title, [text for text in texts if text]))
    return parts


def _join_parts(
    name: str, parts: list[tuple[str, list[str]]], options: ReaderOptions
) -> SegmentationDocument:
    """Document whose segments are the parts that have text."""
    parts = [(title, paragraphs) for title, paragraphs in parts if paragraphs]
    if options.layout == "remove":
        segments = [
            [
                text[start:end]
                for text in paragraphs
                for start, end in find_elements(text, options.unit)
            ]
            for _, paragraphs in parts
        ]
        return join_segments(name, segments)
    texts = [
        "\n\n".join([f"## {title}", *paragraphs] if title else paragraphs)
        for title, paragraphs in parts
    ]
    starts = np.cumsum([0, *(len(text) + 2 for text in texts[:-1])])  # 2 for the blank line
    document = SegmentationDocument.from_text(
        "\n\n".join(texts), name, unit=options.unit, markup="markdown"
    )
    assert document.offsets is not None
    element_starts = [start for start, _ in document.offsets]
    boundaries = np.zeros(len(document), dtype=bool)
    boundaries[np.searchsorted(element_starts, starts)] = True
    return replace(document, boundaries=boundaries)


def _parse_labels(value: Any, count: int, location: str, label_ids: dict[str, int]) -> np.ndarray:
    """Label of each of `count` elements; new text labels are added to `label_ids`."""
    _check_list(value, "labels", count, location)
    # `type(…) is int`, because isinstance(True, int) is True.
    if all(type(label) is int and abs(label) < 1 << 31 for label in value):
        return np.array(value, dtype=np.int64)
    for number, label in enumerate(value, start=1):
        if not isinstance(label, str):
            raise TaskError(
                f"{location}: label {number} is {_json_kind(label)}; "
                "labels are all texts or all integers"
            )
    return np.array(
        [label_ids.setdefault(label, len(label_ids)) for label in value], dtype=np.int64
    )


def _parse_boundaries(value: Any, count: int, location: str) -> np.ndarray:
    """True where a segment begins, (count,). `value` is a list of flags, or of element indices."""
    is_int_list = isinstance(value, list) and all(type(entry) in (bool, int) for entry in value)
    # A list of `count` zeros and ones is read as flags, not as indices.
    if is_int_list and len(value) == count and all(entry in (0, 1) for entry in value):
        return np.array(value, dtype=bool)
    if not is_int_list or any(type(entry) is bool for entry in value):
        _check_list(value, "boundaries", count, location)
        raise TaskError(
            f"{location}: `boundaries` must be true and false, or indices of lines, from 0"
        )
    for index in value:
        if not 0 <= index < count:
            raise TaskError(
                f"{location}: boundary {index} is not a line: "
                f"{count} lines are numbered 0 to {count - 1}"
            )
    boundaries = np.zeros(count, dtype=bool)
    boundaries[value] = True
    return boundaries


def _check_list(value: Any, key: str, count: int, location: str) -> None:
    """Raise TaskError unless `value` is a list of `count` entries."""
    if not isinstance(value, list):
        raise TaskError(f"{location}: `{key}` must be a list, it is {_json_kind(value)}")
    if len(value) != count:
        raise TaskError(
            f"{location} has {count} lines and {len(value)} {key}: there must be one for every line"
        )


def _json_kind(value: Any) -> str:
    """Type of a JSON value, for messages."""
    kinds = {
        dict: "an object",
        list: "a list",
        str: "a text",
        bool: "true or false",
        type(None): "missing",
    }
    return kinds.get(type(value), "a number")
