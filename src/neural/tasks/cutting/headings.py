"""What looks like a heading, and a title for a part that has none."""

from __future__ import annotations

import re
from collections.abc import Sequence

WIDEST_TITLE = 72
"""Characters of a title; longer ones are cut between words."""
LONGEST_HEADING = 12
"""Words of a heading that no mark shows."""
_MARK = re.compile(r"#{1,6}\s+(?=\S)")
_NUMBER = re.compile(
    r"(?:\d{1,3}(?:\.\d{1,3}){0,5}[.):]?|[IVXLC]{1,7}[.)]|(?:chapter|part|section)\s+[\divxlc]{1,7}\b[.:]?)\s+", re.I
)
_ITEM = re.compile(r"(?:[-*•‣◦–—+]|\(?\d{1,3}[.)]|\(?[a-zA-Z][.)]|#{1,6}|>)\s")
_UNDERLINE = re.compile(r"([=\-~^*\"'`#+_])\1{2,}\Z")


def is_underline(line: str) -> bool:
    """`=====` and the like below a heading."""
    return line[:3].count(line[0]) == 3 and _UNDERLINE.match(line) is not None


def begins_item(line: str) -> bool:
    """Whether a line begins an item of a list or carries a heading's mark."""
    return _ITEM.match(line) is not None


def is_marked(line: str) -> bool:
    """`# Heading`."""
    return _MARK.match(line) is not None


def is_numbered(line: str) -> bool:
    """`2.1 Methods`, `IV. Results`, `Chapter 7: …`: a number, and a short title that is no sentence."""
    match = _NUMBER.match(line)
    rest = line[match.end() :] if match else ""
    return bool(rest) and rest[0].isupper() and _is_short(rest)


def likeness(line: str) -> float:
    """How much a line looks like a heading by itself: 0 a sentence, 1 a marked heading."""
    if line[0] != "#" and not _is_short(line):
        return 0.0   # nearly always: a sentence
    if is_marked(line) or is_numbered(line):
        return 1.0
    words = line.split()
    capitals = sum(word[0].isupper() or word[0].isdigit() for word in words) / max(1, len(words))
    return 0.25 + 0.5 * capitals if line[0].isupper() or line[0].isdigit() else 0.1


def title(elements: Sequence[str]) -> str:
    """A title-like first line for a part: its heading if it has one, else how it begins."""
    line = " ".join(next((one for one in elements if any(map(str.isalnum, one))), elements[0]).split())
    match = _MARK.match(line)
    line = line[match.end() :].rstrip("# ") if match else line
    if len(line) <= WIDEST_TITLE:
        return line
    cut = line[: WIDEST_TITLE - 1]
    return (cut.rpartition(" ")[0] or cut).rstrip(",;:–—- ") + "…"


def _is_short(line: str) -> bool:
    return len(line) <= 100 and line[-1] not in ".!?,;…。！？" and len(line.split()) <= LONGEST_HEADING
