"""Text → elements with their layout: headings, blank lines, list items, speaker turns, code.

An element is a sentence, a line or a paragraph. A heading, a code block and a table are one element
each. The spans of the elements are in order, do not overlap, and only white space lies between
them: markup belongs to the span of an element, but not to its text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, fields, replace
from typing import Literal

import numpy as np

from neural.tasks.segmentation.blocks import BlockKind, BlockTable, ParsedText, attach_hidden
from neural.tasks.segmentation.html_blocks import parse_html
from neural.tasks.segmentation.line_wrapping import LINE_ENDS, encode_code_points, find_lines
from neural.tasks.segmentation.markdown_blocks import parse_markdown
from neural.tasks.segmentation.plain_blocks import parse_plain
from neural.tasks.segmentation.text_splitting import ElementUnit, Span, split_sentences

Markup = Literal["auto", "plain", "markdown", "html"]
MARKUP_SUFFIXES = {
    ".md": "markdown",
    ".markdown": "markdown",
    ".mdown": "markdown",
    ".mdx": "markdown",
    ".qmd": "markdown",
    ".rmd": "markdown",
    ".html": "html",
    ".htm": "html",
    ".xhtml": "html",
    ".rst": "plain",
    ".py": "plain",
    ".sh": "plain",
    ".yml": "plain",
    ".yaml": "plain",
    ".toml": "plain",
    ".json": "plain",
    ".csv": "plain",
    ".c": "plain",
    ".h": "plain",
}
"""Markup of a text by the ending of its file name."""
GUESS_CHARACTERS = 100_000
"""Characters at the start of a text that are read to guess its markup."""
MIN_REST_SIGNS = 3
"""Signs of reStructuredText from which a text is not Markdown."""
MARKDOWN_POINTS = 2.0
"""Evidence from which a text is Markdown, in the points of `_MARKDOWN_SIGNS`."""


@dataclass(frozen=True, eq=False)
class Layout:
    """Layout of the elements of a text, arrays with an entry per element, (n,)."""

    heading_level: np.ndarray
    """1 to 6 for a heading, 0 for other elements, int8."""
    blank_lines: np.ndarray
    """Blank lines before the element, int8; in HTML, 1 before a paragraph and the like."""
    begins_line: np.ndarray
    """True for the first element of a line, bool."""
    begins_list_item: np.ndarray
    begins_turn: np.ndarray
    """True where another speaker begins, bool."""
    follows_break: np.ndarray
    """True after a rule (`***`, `<hr>`) or a page break, bool."""
    is_code: np.ndarray
    is_table: np.ndarray
    can_begin: np.ndarray
    """False where no segment should begin, bool: after a heading, inside code and tables."""
    indentation: np.ndarray
    """Columns of white space before the element, if it begins a line, int8."""

    def __post_init__(self) -> None:
        sizes = {entry.name: len(getattr(self, entry.name)) for entry in fields(self)}
        if len(set(sizes.values())) > 1:
            raise ValueError(f"the arrays of a layout differ in length: {sizes}")

    def __len__(self) -> int:
        return len(self.heading_level)

    def to_bytes(self) -> bytes:
        """All arrays, for a hash."""
        return b"".join(getattr(self, entry.name).tobytes() for entry in fields(self))


@dataclass(frozen=True, eq=False)
class TextStructure:
    """Elements of a text, and their layout."""

    offsets: list[Span]
    """Start and end of each element in the text, in characters, markup included."""
    elements: list[str]
    """Texts of the elements, without markup."""
    layout: Layout


def parse_structure(
    text: str, unit: ElementUnit = "sentences", markup: Markup = "auto"
) -> TextStructure:
    """Split a text into elements. A text of white space has none. Time is linear in the text."""
    markup = guess_markup(text) if markup == "auto" else markup
    parsed = _parse_blocks(text, unit, markup)
    if not np.any(parsed.blocks.kind < BlockKind.RULE):
        # Only markup, such as a comment or a rule: its source is its text.
        parsed = _unhide(parse_plain(text, keep_wrapped=unit == "paragraphs"))
    if unit == "lines":
        return _split_into_lines(text, parsed)
    blocks = attach_hidden(parsed.blocks)
    if unit == "paragraphs":
        starts, ends = blocks.content_start, blocks.content_end
        block_ids = np.arange(len(blocks))
    else:
        starts, ends, block_ids = _split_into_sentences(parsed, blocks)
    return _build_structure(text, parsed, blocks, starts, ends, block_ids)


def _parse_blocks(text: str, unit: ElementUnit, markup: Markup) -> ParsedText:
    keep_wrapped = unit == "paragraphs"
    if markup == "html":
        return parse_html(text)
    if markup == "markdown":
        return parse_markdown(text, keep_wrapped=keep_wrapped)
    return parse_plain(text, keep_wrapped=keep_wrapped)


def _unhide(parsed: ParsedText) -> ParsedText:
    """The same text, in which blocks without text are prose."""
    kind = np.where(parsed.blocks.kind >= BlockKind.RULE, BlockKind.PROSE, parsed.blocks.kind)
    blocks = replace(parsed.blocks, kind=kind)
    return replace(parsed, blocks=blocks)


def _split_into_sentences(
    parsed: ParsedText, blocks: BlockTable
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Starts and ends in the clean text and block of each element; only prose is divided."""
    is_prose = blocks.kind == BlockKind.PROSE
    prose, others = np.flatnonzero(is_prose), np.flatnonzero(~is_prose)
    starts, ends, block_ids = split_sentences(
        parsed.clean_text, blocks.content_start[prose], blocks.content_end[prose], parsed.codes
    )
    block_ids = prose[block_ids]
    if not len(others):
        return starts, ends, block_ids
    starts = np.concatenate([starts, blocks.content_start[others]])
    ends = np.concatenate([ends, blocks.content_end[others]])
    block_ids = np.concatenate([block_ids, others])
    order = np.argsort(starts, kind="stable")
    return starts[order], ends[order], block_ids[order]


def _build_structure(
    text: str,
    parsed: ParsedText,
    blocks: BlockTable,
    starts: np.ndarray,
    ends: np.ndarray,
    block_ids: np.ndarray,
) -> TextStructure:
    """Structure of elements that are blocks or parts of blocks, in the clean text."""
    clean_text = parsed.clean_text
    elements = [
        clean_text[start:end] for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
    ]
    is_first = np.diff(block_ids, prepend=-1) != 0
    is_last = np.append(is_first[1:], True)
    source_starts, source_ends = parsed.map_to_source(starts), ends
    if parsed.clean_text is not text:
        source_starts, source_ends = _attach_inline_markup(text, parsed, starts, ends, is_first)
    source_starts = np.where(is_first, blocks.start[block_ids], source_starts)
    source_ends = np.where(is_last, blocks.end[block_ids], source_ends)
    if parsed.source_positions is not None:
        is_code = blocks.kind[block_ids] == BlockKind.CODE
        elements = [
            element if keep_spaces else " ".join(element.split())
            for element, keep_spaces in zip(elements, is_code.tolist(), strict=True)
        ]
    layout = _build_layout(parsed, blocks, starts, ends, block_ids, is_first)
    offsets = list(zip(source_starts.tolist(), source_ends.tolist(), strict=True))
    return TextStructure(offsets, elements, layout)


def _attach_inline_markup(
    text: str, parsed: ParsedText, starts: np.ndarray, ends: np.ndarray, is_first: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Spans in the source, with the markup between two elements of a block.

    Markup up to the first white space belongs to the first element, the rest to the second.
    """
    source_starts, source_ends = parsed.map_to_source(starts), parsed.map_to_source(ends - 1) + 1
    for index in np.flatnonzero(~is_first).tolist():
        low, high = int(source_ends[index - 1]), int(source_starts[index])
        if text[low:high].isspace():
            continue
        match = _MARKUP_BEFORE_SPACE.match(text, low, high)
        low = match.end() if match else low
        source_ends[index - 1] = low
        while low < high and text[low].isspace():
            low += 1
        source_starts[index] = low
    return source_starts, source_ends


_MARKUP_BEFORE_SPACE = re.compile(r"(?:<[^<>]*>|\S)*")


def _build_layout(
    parsed: ParsedText,
    blocks: BlockTable,
    starts: np.ndarray,
    ends: np.ndarray,
    block_ids: np.ndarray,
    is_first: np.ndarray,
) -> Layout:
    kinds = blocks.kind[block_ids]
    level = np.where(kinds == BlockKind.HEADING, blocks.level[block_ids], 0)
    begins_line = is_first.copy()
    inner = np.flatnonzero(~is_first)
    gaps = starts[inner] - ends[inner - 1]
    before = parsed.codes[starts[inner] - 1]
    begins_line[inner] = (gaps > 0) & np.isin(before, encode_code_points(LINE_ENDS))
    can_begin = np.append(True, level[:-1] == 0)[: len(level)]
    return Layout(
        heading_level=level.astype(np.int8),
        blank_lines=np.where(is_first, blocks.blank_lines[block_ids], 0).astype(np.int8),
        begins_line=begins_line,
        begins_list_item=is_first & blocks.is_item[block_ids],
        begins_turn=is_first & blocks.is_turn[block_ids],
        follows_break=is_first & blocks.follows_break[block_ids],
        is_code=kinds == BlockKind.CODE,
        is_table=kinds == BlockKind.TABLE,
        can_begin=can_begin,
        indentation=np.where(is_first, blocks.indent[block_ids], 0).astype(np.int8),
    )


def _split_into_lines(text: str, parsed: ParsedText) -> TextStructure:
    """An element per line: of the source, or in HTML of its blocks."""
    if parsed.source_positions is not None:
        blocks = attach_hidden(parsed.blocks)
        lines = find_lines(parsed.clean_text)
        block_ids = np.searchsorted(blocks.content_start, lines.starts, side="right") - 1
        return _build_structure(text, parsed, blocks, lines.starts, lines.ends, block_ids)
    lines, blocks = find_lines(text), parsed.blocks
    block_ids = np.maximum(np.searchsorted(blocks.start, lines.starts, side="right") - 1, 0)
    is_first = np.diff(block_ids, prepend=-1) != 0
    kinds = blocks.kind[block_ids]
    is_prose = kinds == BlockKind.PROSE
    level = np.where(is_first & (kinds == BlockKind.HEADING), blocks.level[block_ids], 0)
    # The lines after a heading, its underline included, belong to it.
    follows_heading = np.append(False, kinds[:-1] == BlockKind.HEADING)
    follows_rule = np.append(False, kinds[:-1] == BlockKind.RULE)
    layout = Layout(
        heading_level=level.astype(np.int8),
        blank_lines=lines.blank_lines.astype(np.int8),
        begins_line=np.ones(len(lines), bool),
        begins_list_item=is_first & blocks.is_item[block_ids],
        begins_turn=is_first & blocks.is_turn[block_ids],
        follows_break=lines.follows_form_feed | follows_rule,
        is_code=kinds == BlockKind.CODE,
        is_table=kinds == BlockKind.TABLE,
        can_begin=(is_first | is_prose) & ~follows_heading,
        indentation=lines.indents.astype(np.int8),
    )
    offsets = list(zip(lines.starts.tolist(), lines.ends.tolist(), strict=True))
    return TextStructure(offsets, [text[start:end] for start, end in offsets], layout)


# Signs of Markdown and their points; each pattern counts up to three times.
_MARKDOWN_SIGNS = (
    (re.compile(r"^ {0,3}```[^`\n]*$|(?:\A|\n)[ \t]*\n~~~[^~\n]*$", re.M), 1.0),
    (re.compile(r"(?:\A|\n[ \t]*\n) {0,3}#{2,6}[ \t]+\S[^\n]*(?=\n|\Z)"), 1.5),
    (re.compile(r"(?:\A\ufeff?|\n[ \t]*\n)#[ \t]+\w[^\n]*(?=\n[ \t]*\n|\n*\Z)"), 1.0),
    (re.compile(r"!?\[[^\[\]\n]{1,200}\]\((?:https?:|[./#\w-])[^()\s]*\)"), 1.0),
    (re.compile(r"^\|?[ \t]*:?-{2,}:?[ \t]*\|[ \t|:-]*$", re.M), 2.0),
    (re.compile(r"\*\*\w[^*\n]{0,80}\*\*"), 0.5),
    (re.compile(r"(?<![\w`])`[^`\n]{1,80}`(?![\w`])"), 0.3),
    (re.compile(r"\A---\n[\w-]+:"), 1.0),
)
# Directives, roles and literal blocks of reStructuredText, and headings underlined with its marks.
_REST_SIGNS = re.compile(
    r"^\.\. [\w-]+::|:[a-z]+:`[^`\n]+`|::\n[ \t]*\n[ \t]+\S|^\.\. _[^\n]+:|"
    r"^\w[^\n]*\n[~^\"']{4,}$",
    re.M,
)
# Signs of source code, which speak against Markdown.
_CODE_SIGNS = re.compile(
    r"^(?:#!|import \w|from \w+ import|def \w+\(|class \w+[:(]|#include|package \w|\s*return\b"
    r"|export \w+=|\s*(?:if|for|while) .*[:;{]$|.*[;{]$|\w+ ?= ?\S)",
    re.M,
)
_HTML_START = re.compile(
    r"\ufeff?\s*(?:<\?xml[^>]*>\s*)?(?:<!--.{0,2000}?-->\s*)?<(?:!doctype\s+html|html\b)",
    re.I | re.S,
)
_HTML_TAG = re.compile(
    r"</(?:p|div|h[1-6]|li|ul|table|td|body|section|span)\s*>|<(?:p|br|li)\s*/?>", re.I
)


def guess_markup(text: str, suffix: str | None = None) -> Markup:
    """`markdown`, `html` or `plain`: by the ending of the file name if known, else by the text.

    A few headings, fences, tables or links are Markdown, unless the text looks like source code; a
    document type or many block tags are HTML.
    """
    if suffix and (known := MARKUP_SUFFIXES.get(suffix.lower())):
        return known  # type: ignore[return-value]
    start = text[:GUESS_CHARACTERS]
    if "<" in start:
        if _HTML_START.match(start):
            return "html"
        tags = sum(1 for _ in _HTML_TAG.finditer(start))
        lines = start.count("\n") + 1
        points = _count_markdown_points(start)
        if tags >= 3 and tags * 4 >= lines and points < MARKDOWN_POINTS:
            return "html"
    else:
        points = _count_markdown_points(start)
    return "markdown" if points >= MARKDOWN_POINTS else "plain"


def _count_markdown_points(text: str) -> float:
    points = 0.0
    for pattern, value in _MARKDOWN_SIGNS:
        matches = pattern.finditer(text)
        points += value * sum(1 for _, _ in zip(range(3), matches, strict=False))
    if points < MARKDOWN_POINTS:
        return points
    if sum(1 for _ in _REST_SIGNS.finditer(text)) >= MIN_REST_SIGNS:
        return 0.0
    has_fence = "```" in text or "~~~" in text
    code_lines = 0 if has_fence else sum(1 for _ in _CODE_SIGNS.finditer(text))
    return points if code_lines * 5 < text.count("\n") + 1 else 0.0
