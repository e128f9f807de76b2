"""Render a document of titled parts as text in many styles, with the offsets of its parts.

A segmenter that is to trust headings and blank lines where they are, and to do without them where
they are not, is trained on the same document with its layout kept, removed and misleading.
"""

from __future__ import annotations

import html
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypedDict

import numpy as np

from neural.tasks.segmentation.text_splitting import find_elements

WRAP_COLUMNS = 72
MISLEADING_BREAK_SHARE = 0.25
"""Share of the gaps between sentences that get a misleading break."""
_MISLEADING_BREAKS = ("\n\n", "\n", "\n\n\n", "\n\f", "\n\n* * *\n\n", "\n\n{header}\n\n")


class DocumentPart(TypedDict):
    """A part of a document, which becomes a segment."""

    title: str
    level: int
    """1 for the parts of a document, 2 for the parts of its parts, …"""
    paragraphs: Sequence[str]


@dataclass(frozen=True)
class RenderedDocument:
    """A text, and where its parts begin."""

    text: str
    boundaries: tuple[int, ...]
    """Index of the first character of each part but the first, its heading included."""

    def mark_elements(self, offsets: Sequence[tuple[int, int]]) -> np.ndarray:
        """True for the first element of each part but the first, (n,).

        `offsets` are the spans of the elements. If a part begins inside an element, which happens
        where no layout separates them, the next element is marked.
        """
        starts = np.array([start for start, _ in offsets], np.int64)
        marks = np.zeros(len(starts), bool)
        indices = np.searchsorted(starts, np.array(self.boundaries, np.int64))
        marks[indices[indices < len(starts)]] = True
        return marks


PartRenderer = Callable[[DocumentPart, Sequence[int], np.random.Generator], str]
"""(part, its number at each level, generator) → text of the part."""


def render_document(
    title: str | None, parts: Sequence[DocumentPart], style: str, rng: np.random.Generator
) -> RenderedDocument:
    """Render a document in one of `STYLES`. Parts without a title have no heading in any style.

    The title of the document is its first heading, in the styles that have headings.
    """
    chosen = STYLES[style]
    chunks: list[str] = []
    boundaries: list[int] = []
    length = 0

    def append(chunk: str) -> None:
        nonlocal length
        chunks.append(chunk)
        length += len(chunk)

    append(chosen.prefix)
    if title and chosen.render_title:
        append(chosen.render_title(title))
    numbers: list[int] = []
    for index, part in enumerate(parts):
        depth = max(1, part["level"])
        numbers = [*numbers[:depth], *[0] * (depth - len(numbers))]
        numbers[depth - 1] += 1
        rendered = chosen.render_part(part, numbers, rng)
        if index:
            append(chosen.separator)
            boundaries.append(length)
        append(rendered)
    append(chosen.suffix)
    text = "".join(chunks)
    if style == "misleading":
        return _mislead(text, boundaries, title or "Page", rng)
    return RenderedDocument(text, tuple(boundaries))


@dataclass(frozen=True)
class RenderStyle:
    """How a document is written."""

    render_part: PartRenderer
    separator: str = "\n\n"
    """Text between two parts."""
    render_title: Callable[[str], str] | None = None
    prefix: str = ""
    suffix: str = "\n"
    has_headings: bool = True


def _join_blocks(heading: str, part: DocumentPart, *, between: str = "\n\n") -> str:
    return between.join([heading, *part["paragraphs"]] if heading else part["paragraphs"])


def _render_markdown(part: DocumentPart, numbers: Sequence[int], rng: np.random.Generator) -> str:
    return _join_blocks(part["title"] and f"{'#' * (len(numbers) + 1)} {part['title']}", part)


def _render_html(part: DocumentPart, numbers: Sequence[int], rng: np.random.Generator) -> str:
    level = min(len(numbers) + 1, 6)
    heading = f"<h{level}>{html.escape(part['title'])}</h{level}>" if part["title"] else ""
    paragraphs = [f"<p>{html.escape(paragraph)}</p>" for paragraph in part["paragraphs"]]
    return "\n".join([heading, *paragraphs] if heading else paragraphs)


def _render_underlined(part: DocumentPart, numbers: Sequence[int], rng: np.random.Generator) -> str:
    title = part["title"]
    mark = "-~^\"'+"[min(len(numbers) - 1, 5)]
    return _join_blocks(title and f"{title}\n{mark * max(len(title), 3)}", part)


def _render_numbered(part: DocumentPart, numbers: Sequence[int], rng: np.random.Generator) -> str:
    number = ".".join(map(str, numbers)) + "." * (len(numbers) == 1)
    return _join_blocks(part["title"] and f"{number} {_capitalize(part['title'])}", part)


def _render_capitals(part: DocumentPart, numbers: Sequence[int], rng: np.random.Generator) -> str:
    return _join_blocks(part["title"].upper(), part)


def _render_titled(part: DocumentPart, numbers: Sequence[int], rng: np.random.Generator) -> str:
    return _join_blocks(_capitalize(part["title"]), part)


def _render_compact(part: DocumentPart, numbers: Sequence[int], rng: np.random.Generator) -> str:
    return _join_blocks(_capitalize(part["title"]), part, between="\n")


def _render_paragraphs(part: DocumentPart, numbers: Sequence[int], rng: np.random.Generator) -> str:
    return _join_blocks("", part)


def _render_lines(part: DocumentPart, numbers: Sequence[int], rng: np.random.Generator) -> str:
    return "\n".join(sentence for text in part["paragraphs"] for sentence in _sentences(text))


def _render_joined(part: DocumentPart, numbers: Sequence[int], rng: np.random.Generator) -> str:
    return " ".join(part["paragraphs"])


def _render_wrapped(part: DocumentPart, numbers: Sequence[int], rng: np.random.Generator) -> str:
    paragraphs = [textwrap.fill(paragraph, WRAP_COLUMNS) for paragraph in part["paragraphs"]]
    return "\n\n".join(paragraphs)


def _capitalize(title: str) -> str:
    return title[:1].upper() + title[1:]


def _sentences(text: str) -> list[str]:
    return [text[start:end] for start, end in find_elements(text)]


def _mislead(
    text: str, boundaries: Sequence[int], title: str, rng: np.random.Generator
) -> RenderedDocument:
    """Put breaks at random gaps between sentences, and page breaks within sentences."""
    text = text.strip()
    starts = np.array([start for start, _ in find_elements(text)][1:], np.int64)
    chosen = starts[rng.random(len(starts)) < MISLEADING_BREAK_SHARE].tolist()
    # Some page breaks are at any space.
    spaces = np.flatnonzero(np.frombuffer(text.encode("utf-32-le"), np.uint32) == ord(" ")) + 1
    page_count = min(len(spaces), 1 + len(starts) // 20)
    pages = set(rng.choice(spaces, page_count, replace=False).tolist()) if page_count else set()
    chunks, new_boundaries, position, length = [], [], 0, 0
    pending = sorted(boundaries)
    for cut in sorted({*chosen, *pages}):
        while pending and pending[0] < cut:
            new_boundaries.append(length + pending.pop(0) - position)
        chunk = text[position:cut].rstrip()
        mark = "\n\f" if cut in pages else str(rng.choice(_MISLEADING_BREAKS))
        mark = mark.replace("{header}", title)
        chunks += [chunk, mark]
        length += len(chunk) + len(mark)
        position = cut
    new_boundaries += [length + boundary - position for boundary in pending]
    return RenderedDocument("".join([*chunks, text[position:], "\n"]), tuple(new_boundaries))


STYLES: dict[str, RenderStyle] = {
    "markdown": RenderStyle(_render_markdown, render_title=lambda title: f"# {title}\n\n"),
    "html": RenderStyle(
        _render_html,
        separator="\n",
        prefix="<!DOCTYPE html>\n<html><body>\n",
        suffix="\n</body></html>\n",
        render_title=lambda title: f"<h1>{html.escape(title)}</h1>\n",
    ),
    "underlined": RenderStyle(
        _render_underlined, render_title=lambda title: f"{title}\n{'=' * max(len(title), 3)}\n\n"
    ),
    "numbered": RenderStyle(
        _render_numbered, render_title=lambda title: f"{_capitalize(title)}\n\n"
    ),
    "capitals": RenderStyle(_render_capitals, render_title=lambda title: f"{title.upper()}\n\n"),
    "titled": RenderStyle(
        _render_titled,
        separator="\n\n\n",
        render_title=lambda title: f"{_capitalize(title)}\n\n",
    ),
    "compact": RenderStyle(
        _render_compact, separator="\n", render_title=lambda title: f"{_capitalize(title)}\n"
    ),
    "wide_gaps": RenderStyle(_render_paragraphs, separator="\n\n\n\n", has_headings=False),
    "part_gaps": RenderStyle(_render_joined, has_headings=False),
    "paragraphs": RenderStyle(_render_paragraphs, has_headings=False),
    "lines": RenderStyle(_render_lines, separator="\n", has_headings=False),
    "wrapped": RenderStyle(_render_wrapped, has_headings=False),
    "flat": RenderStyle(_render_joined, separator=" ", has_headings=False),
    "misleading": RenderStyle(_render_joined, separator=" ", has_headings=False),
}
"""Styles by name.

- markdown, html, underlined, numbered, capitals, titled: headings; `titled` are plain short lines
- compact: headings without blank lines
- wide_gaps: no headings, more blank lines between parts than between paragraphs
- part_gaps: no headings, a blank line between parts only
- paragraphs: no headings, a blank line between all paragraphs; wrapped: the same, at 72 columns
- lines: one line per sentence, nothing between parts
- flat: all in one line
- misleading: blank lines, rules, page breaks and page headers at random places
"""
