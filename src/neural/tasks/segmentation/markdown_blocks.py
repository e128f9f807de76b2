"""Blocks of Markdown: headings, paragraphs, list items, fences, tables, quotes, comments.

A tolerant subset of CommonMark with tables and front matter, read line by line in linear time.
Quote marks, heading marks, link targets and HTML tags are replaced by spaces in the clean text, so
that it has the offsets of the source.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass, field

from neural.tasks.segmentation.blocks import Block, BlockKind, BlockTable, ParsedText
from neural.tasks.segmentation.line_wrapping import LineTable, encode_code_points, find_lines
from neural.tasks.segmentation.speaker_turns import find_turns

MAX_FRONT_MATTER_LINES = 400
_ATX = re.compile(r"(#{1,6})(?:[ \t]+|\Z)")
_ATX_CLOSE = re.compile(r"(?:[ \t]+#+)\Z|\A#+\Z")
_FENCE = re.compile(r"(`{3,})[^`]*\Z|(~{3,})")
_SETEXT = re.compile(r"(?:={2,}|-{2,})\Z")
_RULE = re.compile(r"([-*_])(?:[ \t]*\1){2,}\Z")
_ITEM = re.compile(r"(?:[-*+]|\d{1,9}[.)])(?=[ \t]|\Z)")
_QUOTE = re.compile(r">(?:[ \t]*>)*[ \t]?")
_DELIMITER_ROW = re.compile(r"\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?\Z")
_FRONT_MATTER_KEY = re.compile(r"[\w-]+\s*[:=]")
_RAW_TAG = re.compile(r"<(pre|script|style|textarea|table|svg)\b", re.I)
_HTML_HEADING = re.compile(r"<h([1-6])\b[^<>]*>", re.I)
_BLOCK_TAGS = (
    "address article aside blockquote body center dd details dialog dir div dl dt fieldset "
    "figcaption figure footer form h1 h2 h3 h4 h5 h6 header hr html iframe legend li link main "
    "menu nav ol p picture section source summary tbody td tfoot th thead title tr ul video img br"
).replace(" ", "|")
_HTML_BLOCK = re.compile(rf"</?(?:{_BLOCK_TAGS}|pre|table|script|style)(?=[\s/>]|\Z)", re.I)
_INLINE_TAG = re.compile(
    rf"</?(?:{_BLOCK_TAGS}|a|abbr|b|big|code|del|em|font|i|ins|kbd|mark|s|samp|small|span|strong"
    r"|sub|sup|tt|u|var|table|pre)(?=[\s/>])[^<>]*>|<!--[^<>]*-->",
    re.I,
)
_LINK = re.compile(r"!?\[([^\[\]]*)\]\([^()\s]*(?:\s+\"[^\"\n]*\")?\)")


@dataclass
class _Paragraph:
    """Lines of a paragraph that is not finished yet."""

    start: int = 0
    content_start: int = 0
    end: int = 0
    last_line: int = 0
    """Start of the last line."""
    previous_end: int = 0
    """End of the line before it."""
    line_count: int = 0
    has_words: bool = False
    blank_lines: int = 0
    indent: int = 0
    is_item: bool = False
    is_html: bool = False
    """An HTML block, which ends at a blank line."""
    speaker: int = -1


class _Lines:
    """The lines of a text as lists, which are faster than arrays if read one by one."""

    def __init__(self, table: LineTable) -> None:
        self.table, self.text = table, table.text
        self.starts, self.ends = table.starts.tolist(), table.ends.tolist()
        self.blank_lines, self.indents = table.blank_lines.tolist(), table.indents.tolist()

    def __len__(self) -> int:
        return len(self.starts)

    def line(self, index: int) -> str:
        """Text of one line."""
        return self.text[self.starts[index] : self.ends[index]]


@dataclass
class _State:
    text: str
    blocks: list[Block] = field(default_factory=list)
    masks: list[tuple[int, int]] = field(default_factory=list)
    """Spans of markup, replaced by spaces in the clean text."""
    paragraph: _Paragraph | None = None
    item_indent: int = 0
    """Indentation of the text of the list item that is open; 0 outside lists."""
    quote_depth: int = 0
    last_speaker: int = -1

    def flush(self) -> None:
        """Finish the paragraph."""
        paragraph, self.paragraph = self.paragraph, None
        if paragraph is None:
            return
        is_turn = paragraph.speaker >= 0 and paragraph.speaker != self.last_speaker
        self.last_speaker = paragraph.speaker if paragraph.speaker >= 0 else self.last_speaker
        self.add(
            paragraph.start,
            paragraph.end,
            BlockKind.PROSE,
            content_start=paragraph.content_start,
            blank_lines=paragraph.blank_lines,
            indent=paragraph.indent,
            is_item=paragraph.is_item,
            is_turn=is_turn,
        )

    def add(
        self,
        start: int,
        end: int,
        kind: BlockKind,
        *,
        content_start: int | None = None,
        content_end: int | None = None,
        level: int = 0,
        blank_lines: int = 0,
        indent: int = 0,
        is_item: bool = False,
        is_turn: bool = False,
    ) -> None:
        """Append a block."""
        self.blocks.append(
            Block(
                start,
                end,
                start if content_start is None else content_start,
                end if content_end is None else content_end,
                kind,
                level,
                blank_lines,
                indent,
                is_item,
                is_turn,
            )
        )


def parse_markdown(text: str, *, keep_wrapped: bool = False) -> ParsedText:
    """Blocks of a Markdown text.

    With `keep_wrapped`, the items of a list without blank lines are one block.
    """
    lines = _Lines(find_lines(text))
    state = _State(text)
    turns = _find_turn_lines(lines)
    index = _skip_front_matter(state, lines)
    while index < len(lines):
        index = _read_line(state, lines, index, turns, keep_wrapped)
    state.flush()
    return _clean(state, lines)


def _read_line(
    state: _State, lines: _Lines, index: int, turns: dict[int, int], keep_wrapped: bool
) -> int:
    """Read one line, or the block that begins with it; the index of the next line to read."""
    text = state.text
    end, indent = lines.ends[index], lines.indents[index]
    if lines.blank_lines[index]:
        state.flush()
        state.quote_depth = 0
    content = lines.starts[index]
    if text[content] == ">" and indent - state.item_indent < 4:
        content, indent = _strip_quote_marks(state, lines, index)
        if content == end:  # a blank line of the quote
            return index + 1
    paragraph = state.paragraph
    if paragraph is None:
        if indent < state.item_indent and not _ITEM.match(text, content, end):
            state.item_indent = 0
        if indent - state.item_indent >= 4:
            return _read_indented_code(state, lines, index)
    first = text[content]
    # Most lines of a paragraph need no other check.
    if first.isalpha() or (paragraph and paragraph.is_html):
        return _add_line(state, lines, index, content, indent, turns)
    line = text[content:end]
    if first in "`~" and (fence := _FENCE.match(line)):
        return _read_fence(state, lines, index, content, fence[1] or fence[2])
    if first == "#" and (mark := _ATX.match(line)):
        return _read_atx_heading(state, lines, index, content, indent, mark)
    is_setext = first in "=-" and _SETEXT.match(line) and indent >= state.item_indent
    if is_setext and _end_setext_heading(state, content, end):
        return index + 1
    if first in "|:-" and "-" in line and (next_index := _read_table(state, lines, index, line)):
        return next_index
    if first in "-*_" and _RULE.match(line):
        state.flush()
        state.item_indent = 0
        start, blank_lines = lines.starts[index], lines.blank_lines[index]
        state.add(start, end, BlockKind.RULE, blank_lines=blank_lines)
        return index + 1
    # A number in the middle of a paragraph begins a list only if it is 1.
    may_be_item = paragraph is None or not first.isdigit() or state.item_indent
    if (mark := _ITEM.match(line)) and (may_be_item or mark.group()[:-1] == "1"):
        text_start = len(line) - len(line[mark.end() :].lstrip())
        state.item_indent = indent + (text_start if text_start < len(line) else 2)
        if not keep_wrapped:
            state.flush()
        if fence := _FENCE.match(line[text_start:]):
            return _read_fence(state, lines, index, content, fence[1] or fence[2])
        return _add_line(state, lines, index, content, indent, turns, is_item=True)
    if first == "<" and paragraph is None:
        return _read_html(state, lines, index, content, indent, turns)
    return _add_line(state, lines, index, content, indent, turns)


def _strip_quote_marks(state: _State, lines: _Lines, index: int) -> tuple[int, int]:
    """Start and indentation of the text after the quote marks of a line."""
    text, start, end = state.text, lines.starts[index], lines.ends[index]
    match = _QUOTE.match(text, start, end)
    assert match is not None
    content, depth, indent = match.end(), match.group().count(">"), 0
    state.masks.append((start, content))
    while content < end and text[content] in " \t":
        content, indent = content + 1, indent + 1
    if depth != state.quote_depth or content == end:
        state.flush()
    state.quote_depth = depth
    if content == end:
        state.add(start, end, BlockKind.HIDDEN, blank_lines=lines.blank_lines[index] or 1)
    return content, indent


def _read_atx_heading(
    state: _State, lines: _Lines, index: int, content: int, indent: int, mark: re.Match[str]
) -> int:
    """Read `## Title`; without a title it is hidden."""
    state.flush()
    start, end = lines.starts[index], lines.ends[index]
    title_start = content + mark.end()
    title = _ATX_CLOSE.sub("", state.text[title_start:end]).rstrip()
    blank_lines = lines.blank_lines[index]
    if not any(map(str.isalnum, title)):
        state.add(start, end, BlockKind.HIDDEN, blank_lines=blank_lines)
        return index + 1
    if indent < state.item_indent:
        state.item_indent = 0
    state.add(
        start,
        end,
        BlockKind.HEADING,
        content_start=title_start,
        content_end=title_start + len(title),
        level=len(mark[1]),
        blank_lines=blank_lines,
        indent=indent,
    )
    return index + 1


def _add_line(
    state: _State,
    lines: _Lines,
    index: int,
    content: int,
    indent: int,
    turns: dict[int, int],
    *,
    is_item: bool = False,
    is_html: bool = False,
) -> int:
    """Add a line to the paragraph; begin one if there is none, or where a turn begins."""
    start, end = lines.starts[index], lines.ends[index]
    if index in turns:
        state.flush()
    if state.paragraph is None:
        state.paragraph = _Paragraph(
            start,
            content,
            blank_lines=lines.blank_lines[index],
            indent=indent,
            is_item=is_item,
            is_html=is_html,
            speaker=turns.get(index, -1),
        )
    paragraph = state.paragraph
    paragraph.previous_end, paragraph.end, paragraph.last_line = paragraph.end, end, content
    paragraph.line_count += 1
    paragraph.has_words = paragraph.has_words or any(map(str.isalnum, state.text[content:end]))
    # Two spaces, or a backslash, at the end of a line are a line break.
    text = state.text
    if text[end - 1] == "\\" or text[end : end + 3] == "  \n":
        state.flush()
    return index + 1


def _end_setext_heading(state: _State, content: int, end: int) -> bool:
    """Make the paragraph above an underline a heading; False if there is none."""
    paragraph = state.paragraph
    if paragraph is None or paragraph.is_item or not paragraph.has_words:
        return False
    state.paragraph = None
    state.add(
        paragraph.start,
        end,
        BlockKind.HEADING,
        content_start=paragraph.content_start,
        content_end=paragraph.end,
        level=1 if state.text[content] == "=" else 2,
        blank_lines=paragraph.blank_lines,
        indent=paragraph.indent,
    )
    return True


def _read_fence(state: _State, lines: _Lines, index: int, content: int, mark: str) -> int:
    """Read a fenced code block, up to its closing fence or the end of the text."""
    state.flush()
    text, first = state.text, index
    index += 1
    in_quote = text[lines.starts[first]] == ">"
    while index < len(lines):
        start, end = lines.starts[index], lines.ends[index]
        if in_quote:
            if text[start] != ">":
                break  # the quote ends, and the fence with it
            match = _QUOTE.match(text, start, end)
            assert match is not None
            start = match.end()
            while start < end and text[start] in " \t":
                start += 1
        index += 1
        if text.startswith(mark, start) and not text[start:end].strip(mark[0]):
            break
    state.add(
        lines.starts[first],
        lines.ends[index - 1],
        BlockKind.CODE,
        content_start=content,
        blank_lines=lines.blank_lines[first],
        indent=lines.indents[first],
    )
    return index


def _read_indented_code(state: _State, lines: _Lines, index: int) -> int:
    """Read lines that are indented by four columns more than the text around them."""
    first, indent = index, state.item_indent + 4
    while index < len(lines) and (index == first or lines.indents[index] >= indent):
        index += 1
    state.add(
        lines.starts[first],
        lines.ends[index - 1],
        BlockKind.CODE,
        blank_lines=lines.blank_lines[first],
        indent=lines.indents[first],
    )
    return index


def _read_table(state: _State, lines: _Lines, index: int, line: str) -> int | None:
    """Read a table whose delimiter row is `line`; None if it is no table."""
    paragraph = state.paragraph
    if paragraph is None or "|" not in line or not _DELIMITER_ROW.match(line):
        return None
    header = state.text[paragraph.last_line : paragraph.end]
    if "|" not in header:
        return None
    start, blank_lines, indent = paragraph.start, paragraph.blank_lines, paragraph.indent
    if paragraph.line_count > 1:  # the header is the last line of the paragraph
        start, blank_lines = lines.starts[index - 1], 0
        paragraph.end = paragraph.previous_end
        state.flush()
    state.paragraph = None
    index += 1
    while index < len(lines) and not lines.blank_lines[index]:
        row_start, row_end = lines.starts[index], lines.ends[index]
        if "|" not in state.text[row_start:row_end] or state.text[row_start] in "#`~":
            break
        index += 1
    end = lines.ends[index - 1]
    state.add(start, end, BlockKind.TABLE, blank_lines=blank_lines, indent=indent)
    return index


def _read_html(
    state: _State, lines: _Lines, index: int, content: int, indent: int, turns: dict[int, int]
) -> int:
    """Read a comment, a raw element (`<pre>`, `<table>`, `<script>`), a heading or an HTML block."""
    text, start, end = state.text, lines.starts[index], lines.ends[index]
    blank_lines = lines.blank_lines[index]
    if text.startswith("<!--", content):
        close = text.find("-->", content + 4)
        last = len(text) if close < 0 else close + 3
        next_index, last = _end_lines(lines, index, last)
        state.add(start, last, BlockKind.HIDDEN, blank_lines=blank_lines)
        return next_index
    if match := _RAW_TAG.match(text, content, end):
        name = match[1].lower()
        close_tag = re.compile(rf"</{name}\s*>", re.I).search(text, match.end())
        last = len(text) if close_tag is None else close_tag.end()
        next_index, last = _end_lines(lines, index, last)
        kind = {"pre": BlockKind.CODE, "textarea": BlockKind.CODE, "table": BlockKind.TABLE}
        state.add(
            start, last, kind.get(name, BlockKind.HIDDEN), blank_lines=blank_lines, indent=indent
        )
        return next_index
    if match := _HTML_HEADING.match(text, content, end):
        close = re.compile(rf"</h{match[1]}\s*>", re.I).search(text, match.end(), match.end() + 600)
        title = _INLINE_TAG.sub(" ", text[match.end() : close.start()]) if close else ""
        if close and any(map(str.isalnum, title)):
            next_index, last = _end_lines(lines, index, close.end())
            state.add(
                start,
                last,
                BlockKind.HEADING,
                content_start=match.end(),
                content_end=close.start(),
                level=int(match[1]),
                blank_lines=blank_lines,
                indent=indent,
            )
            return next_index
    is_html = _HTML_BLOCK.match(text, content, end) is not None
    return _add_line(state, lines, index, content, indent, turns, is_html=is_html)


def _end_lines(lines: _Lines, index: int, position: int) -> tuple[int, int]:
    """Index of the first line that begins at or after `position`, and the end of the line before."""
    next_index = max(bisect_left(lines.starts, position), index + 1)
    return next_index, lines.ends[next_index - 1]


def _skip_front_matter(state: _State, lines: _Lines) -> int:
    """Hide YAML or TOML between `---` (or `+++`) at the top; the index of the line after it."""
    if not len(lines) or lines.line(0) not in ("---", "+++"):
        return 0
    mark = lines.line(0)
    for index in range(1, min(len(lines), MAX_FRONT_MATTER_LINES)):
        if lines.line(index) in (mark, "..."):
            if not any(_FRONT_MATTER_KEY.match(lines.line(line)) for line in range(1, index)):
                return 0
            state.add(lines.starts[0], lines.ends[index], BlockKind.HIDDEN)
            return index + 1
    return 0


def _find_turn_lines(lines: _Lines) -> dict[int, int]:
    """Lines at which speakers' turns begin, with numbers of the speakers."""
    if not len(lines):
        return {}
    candidates = [
        (index, start, end)
        for index, (start, end) in enumerate(zip(lines.starts, lines.ends, strict=True))
        if lines.text.find(":", start, min(end, start + 64)) > 0 or lines.text[start] == "<"
    ]
    return find_turns(lines.text, candidates, sum(count > 0 for count in lines.blank_lines) + 1)


def _clean(state: _State, lines: _Lines) -> ParsedText:
    """Replace markup by spaces, and hide blocks that have nothing else."""
    masks = list(state.masks)
    for block in state.blocks:
        if block.kind <= BlockKind.HEADING:
            masks += _find_inline_markup(state.text, block)
    clean_text = _replace_by_spaces(state.text, masks)
    page_starts = set(lines.table.starts[lines.table.follows_form_feed].tolist())
    blocks = [_trim(clean_text, block) for block in state.blocks]
    if page_starts:
        blocks = [block._replace(follows_break=block.start in page_starts) for block in blocks]
    codes = encode_code_points(clean_text) if masks else lines.table.codes
    return ParsedText(clean_text, codes, BlockTable.from_blocks(blocks))


def _find_inline_markup(text: str, block: Block) -> list[tuple[int, int]]:
    """Spans of HTML tags and link targets; none if a heading has nothing else."""
    offset = block.content_start
    content, spans = text[offset : block.content_end], []
    if "<" in content:
        spans += [match.span() for match in _INLINE_TAG.finditer(content)]
    if "](" in content:
        for match in _LINK.finditer(content):
            low, high = match.span(1)
            if high > low:
                spans += [(match.start(), low), (high, match.end())]
    if spans and block.kind == BlockKind.HEADING and not _replace_by_spaces(content, spans).strip():
        return []
    return [(offset + low, offset + high) for low, high in spans]


def _trim(clean_text: str, block: Block) -> Block:
    """A block whose content has no white space around it; hidden if it has no content."""
    content = clean_text[block.content_start : block.content_end]
    stripped = content.strip()
    if not stripped:
        return block if block.kind == BlockKind.RULE else block._replace(kind=BlockKind.HIDDEN)
    if len(stripped) == len(content):
        return block
    low = block.content_start + len(content) - len(content.lstrip())
    return block._replace(content_start=low, content_end=low + len(stripped))


def _replace_by_spaces(text: str, spans: list[tuple[int, int]]) -> str:
    """The text with spaces in place of the spans, which may overlap."""
    if not spans:
        return text
    chunks, position = [], 0
    for start, end in sorted(spans):
        start = max(start, position)
        if end <= start:
            continue
        chunks += [text[position:start], " " * (end - start)]
        position = end
    return "".join([*chunks, text[position:]])
