"""Blocks of HTML: a tolerant scanner in one pass, with offsets into the source.

Scripts, styles, comments and the head of the page are no text. Tags between two blocks belong to
the span of one of them: closing tags to the block before, opening tags to the block after.
"""

from __future__ import annotations

import html
import re
from dataclasses import dataclass, field

import numpy as np

from neural.tasks.segmentation.blocks import Block, BlockKind, BlockTable, ParsedText
from neural.tasks.segmentation.line_wrapping import encode_code_points
from neural.tasks.segmentation.speaker_turns import find_turns

_BLOCK_TAG_LIST = """
    address article aside blockquote body caption center dd details dialog dir div dl dt
    fieldset figcaption figure footer form h1 h2 h3 h4 h5 h6 head header hr html iframe
    legend li main menu nav ol optgroup option p pre section select summary table tbody td
    tfoot th thead tr ul
"""
BLOCK_TAGS = frozenset(_BLOCK_TAG_LIST.split())
"""Elements that begin and end a block."""
MAX_QUOTED_CHARACTERS = 2000
"""Longest rest of a tag after a `>` in a quoted value."""
_HIDDEN_TAGS = frozenset(
    ("script", "style", "template", "svg", "math", "title", "noscript", "textarea")
)
_SPACED_TAG_LIST = """
    address article aside blockquote center details dl fieldset figure footer form h1 h2 h3
    h4 h5 h6 header hr main menu nav ol p pre section table ul
"""
_SPACED_TAGS = frozenset(_SPACED_TAG_LIST.split())
"""Elements that are shown with space above them, as after a blank line."""
_CLOSING_TAGS = {name: re.compile(rf"</{name}\b[^<>]*>?", re.I) for name in _HIDDEN_TAGS}
_TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9:-]*)")
_ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z][a-zA-Z0-9]{1,31});?")
_LINE_BREAK = re.compile(r"[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")


@dataclass
class _Scanner:
    """State of the scan."""

    text: str
    chunks: list[str] = field(default_factory=list)
    clean_starts: list[int] = field(default_factory=list)
    source_starts: list[int] = field(default_factory=list)
    clean_length: int = 0
    blocks: list[Block] = field(default_factory=list)
    content_start: int = -1
    """Start of the block that is open, in the clean text; −1 if there is none."""
    text_end: int = 0
    """End of the last text, in the source."""
    close_end: int = 0
    """End of the last closing tag or comment, in the source."""
    kind: BlockKind = BlockKind.PROSE
    level: int = 0
    blank_lines: int = 0
    is_item: bool = False
    follows_break: bool = False
    block_start: int = 0
    """Start of the block that is open, in the source."""
    line_breaks: int = 0
    """Number of `<br>` since the last text."""
    table_starts: list[int] = field(default_factory=list)
    """Number of blocks before each table that is open."""

    def add_text(self, start: int, end: int) -> None:
        """Add source text between two tags."""
        source = self.text[start:end]
        if not source.strip() and self.content_start < 0:
            return
        if self.content_start < 0:
            stripped = len(source) - len(source.lstrip())
            start, source = start + stripped, source[stripped:]
            self._begin_block()
        elif self.line_breaks:
            self._append("\n", start)
        self.line_breaks = 0
        if self.kind != BlockKind.CODE:
            source = _LINE_BREAK.sub(" ", source)
        position = 0
        if "&" in source:
            for match in _ENTITY.finditer(source):
                character = html.unescape(match.group())
                if character == match.group():
                    continue
                if match.start() > position:
                    self._append(source[position : match.start()], start + position)
                self._append(character, start + match.start())
                position = match.end()
        if position < len(source):
            self._append(source[position:], start + position)
        if source.strip():
            self.text_end = start + len(source.rstrip())

    def _begin_block(self) -> None:
        # Blocks are separated in the clean text, so that no sentence spans two of them.
        self._append("\n", self.text_end)
        self.content_start = self.clean_length
        boundary = max(self.text_end, self.close_end)
        if self.blocks:
            self.blocks[-1] = self.blocks[-1]._replace(end=boundary)
        self.block_start = boundary if self.blocks else 0

    def _append(self, chunk: str, source_start: int) -> None:
        self.clean_starts.append(self.clean_length)
        self.source_starts.append(source_start)
        self.chunks.append(chunk)
        self.clean_length += len(chunk)

    def end_block(self) -> None:
        """End the block that is open."""
        if self.content_start >= 0:
            self.blocks.append(
                Block(
                    self.block_start,
                    self.text_end,
                    self.content_start,
                    self.clean_length,
                    self.kind,
                    self.level,
                    self.blank_lines,
                    is_item=self.is_item,
                    follows_break=self.follows_break,
                )
            )
            self.blank_lines, self.is_item, self.follows_break = 0, False, False
        self.content_start, self.line_breaks = -1, 0

    def open_tag(self, name: str) -> None:
        """Handle an opening tag."""
        if name == "br":
            self.line_breaks += 1
            if self.line_breaks > 1 and self.kind == BlockKind.PROSE:
                self.end_block()
                self.blank_lines = 1
            return
        if name not in BLOCK_TAGS or self.kind == BlockKind.CODE:
            return
        self.end_block()
        self.kind, self.level = BlockKind.PROSE, 0
        if name in _SPACED_TAGS:
            self.blank_lines = 1
        if len(name) == 2 and name[0] == "h" and name[1] in "123456":
            self.kind, self.level = BlockKind.HEADING, int(name[1])
        elif name == "li":
            self.is_item = True
        elif name == "pre":
            self.kind = BlockKind.CODE
        elif name == "hr":
            self.follows_break = True
        elif name == "table":
            self.table_starts.append(len(self.blocks))

    def close_tag(self, name: str, end: int) -> None:
        """Handle a closing tag that ends at `end`."""
        self.close_end = end
        if self.kind == BlockKind.CODE and name != "pre":
            return
        if name in BLOCK_TAGS or name == "br":
            self.end_block()
            self.kind, self.level, self.is_item = BlockKind.PROSE, 0, False
            if name in _SPACED_TAGS:
                self.blank_lines = 1
        if name == "table" and self.table_starts:
            self._join_table(self.table_starts.pop())

    def _join_table(self, first: int) -> None:
        """Join the blocks since the start of a table, unless it only arranges parts of a page."""
        cells = self.blocks[first:]
        if not cells or any(cell.kind == BlockKind.HEADING for cell in cells):
            return
        self.blocks[first:] = [
            Block(
                cells[0].start,
                cells[-1].end,
                cells[0].content_start,
                cells[-1].content_end,
                BlockKind.TABLE,
                blank_lines=cells[0].blank_lines,
                follows_break=cells[0].follows_break,
            )
        ]


def parse_html(text: str) -> ParsedText:
    """Blocks of an HTML page or fragment, in linear time."""
    scanner = _Scanner(text)
    length = len(text)
    position = text_start = 1 if text.startswith("\ufeff") else 0
    # A search that failed once is not repeated: that keeps the time linear.
    has_close = {"-->": True, ">": True}
    while True:
        tag_start = text.find("<", position)
        if tag_start < 0:
            break
        match = _TAG.match(text, tag_start)
        following = text[tag_start + 1 : tag_start + 2]
        if match is None and following not in ("!", "?"):
            position = tag_start + 1
            continue
        if match is None and text.startswith("<!--", tag_start):
            close = text.find("-->", tag_start + 4) if has_close["-->"] else -1
            has_close["-->"] = close >= 0
            tag_end = close + 3 if close >= 0 else length
        else:
            close = text.find(">", tag_start) if has_close[">"] else -1
            if close < 0:
                has_close[">"] = False
                if match is None:
                    position = tag_start + 1
                    continue
                break
            tag_end = _end_of_tag(text, tag_start, close)
        scanner.add_text(text_start, tag_start)
        if match is None:
            scanner.close_end = tag_end
        elif match[1]:
            scanner.close_tag(match[2].lower(), tag_end)
        else:
            name = match[2].lower()
            scanner.open_tag(name)
            if name in _HIDDEN_TAGS and text[tag_end - 2] != "/" and has_close.get(name, True):
                hidden = _CLOSING_TAGS[name].search(text, tag_end)
                has_close[name] = hidden is not None
                if hidden or name in ("script", "style"):
                    tag_end = hidden.end() if hidden else length
                    scanner.close_end = tag_end
            elif name == "hr":
                scanner.close_end = tag_end
        position = text_start = tag_end
    scanner.add_text(text_start, length)
    scanner.end_block()
    return _finish(scanner)


def _end_of_tag(text: str, start: int, close: int) -> int:
    """Index after the `>` of a tag; `close` is the first `>`, which may be in a quoted value."""
    for quote in "\"'":
        if text.count(quote, start, close) % 2:
            # A quote that is not closed soon is a typing error; the limit keeps the time linear.
            end_quote = text.find(quote, close, close + MAX_QUOTED_CHARACTERS)
            end_tag = text.find(">", end_quote, end_quote + MAX_QUOTED_CHARACTERS)
            if end_quote >= 0 and end_tag >= 0:
                return end_tag + 1
    return close + 1


def _finish(scanner: _Scanner) -> ParsedText:
    """Trim the blocks, and mark speakers' turns."""
    clean_text, text = "".join(scanner.chunks), scanner.text
    blocks = []
    for block in scanner.blocks:
        content = clean_text[block.content_start : block.content_end]
        stripped = content.strip()
        low = block.content_start + len(content) - len(content.lstrip())
        start, end = block.start, block.end
        while start < end and (text[start].isspace() or (start == 0 and text[0] == "\ufeff")):
            start += 1
        while end > start and text[end - 1].isspace():
            end -= 1
        kind = block.kind if stripped else BlockKind.HIDDEN
        blocks.append(
            block._replace(
                start=start,
                end=end,
                content_start=low,
                content_end=low + len(stripped),
                kind=kind,
            )
        )
    if blocks:
        blocks[-1] = blocks[-1]._replace(end=len(text.rstrip()))
    candidates = [
        (index, block.content_start, block.content_end)
        for index, block in enumerate(blocks)
        if block.kind == BlockKind.PROSE
    ]
    previous = -1
    for index, speaker in find_turns(clean_text, candidates, len(blocks)).items():
        blocks[index] = blocks[index]._replace(is_turn=speaker != previous)
        previous = speaker
    positions = (
        np.array(scanner.clean_starts, np.int64),
        np.array(scanner.source_starts, np.int64),
    )
    return ParsedText(
        clean_text, encode_code_points(clean_text), BlockTable.from_blocks(blocks), positions
    )
