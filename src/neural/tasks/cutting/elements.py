"""A text → its elements, lines or sentences, with exact places. What lies between two elements is white space."""

from __future__ import annotations

import re
from typing import Literal

from neural.tasks.cutting.sentences import sentence_ends
from neural.tasks.cutting.wrapping import LINE_ENDS, Span, blocks

Unit = Literal["lines", "sentences"]
_LINE = re.compile(f"[^{LINE_ENDS}]+")


def spans(text: str, unit: Unit = "sentences") -> list[Span]:
    """The elements in their order, none empty, none overlapping, without the white space around them.

    A byte order mark at the beginning counts as white space. Time and memory grow with the length of the text.
    """
    first = 1 if text.startswith("\ufeff") else 0
    lines = [place for match in _LINE.finditer(text, first) if (place := _trimmed(text, *match.span()))]
    if unit == "lines":
        return lines
    found = []
    for start, end in blocks(text, lines):
        for stop in sentence_ends(text, start, end):
            if place := _trimmed(text, start, stop):
                found.append(place)
            start = stop
    return found


def _trimmed(text: str, start: int, end: int) -> Span | None:
    piece = text[start:end]
    left = len(piece) - len(piece.lstrip())
    right = len(piece.rstrip())
    return (start + left, start + right) if right > left else None
