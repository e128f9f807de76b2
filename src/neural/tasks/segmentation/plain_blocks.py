"""Blocks of plain text: headings, list items, speaker turns, code, tables and scene breaks.

Nothing marks a heading in plain text but the way it is written, so each kind has its own rule:
underlined, numbered, in capitals, or a short line between blank lines. The rules prefer to miss a
heading: verses, addresses, signatures and list items are short lines, too.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from itertools import pairwise

import numpy as np

from neural.tasks.segmentation.blocks import BlockKind, BlockTable, ParsedText
from neural.tasks.segmentation.line_wrapping import (
    LineTable,
    encode_code_points,
    find_candidates,
    find_lines,
    find_underlines,
    mark_hard_breaks,
)
from neural.tasks.segmentation.speaker_turns import MAX_TURN_MARK_CHARACTERS, MIN_TURNS, find_turns

MAX_HEADING_CHARACTERS = 90
MAX_HEADING_WORDS = 12
MIN_PROSE_CHARACTERS = 50
"""A paragraph below a heading has at least this many characters, or several lines."""
MIN_UNDERLINE_SHARE = 0.6
"""Length of an underline, relative to its heading."""
MIN_UNDERLINED_HEADINGS = 3
"""In a text with so many underlined headings, lines without an underline are no headings."""
MAX_CAPITAL_LINE_SHARE = 0.3
"""In a text with more lines in capitals, capitals do not mark headings."""
MIN_OTHER_HEADINGS = 3
"""In a text with so many numbered headings or headings in capitals, others are in title case."""
MIN_HEADING_SHARE = 0.5
"""If fewer of the short lines between blank lines are above prose, none is a heading."""
REPEAT_DISTANCE_LINES = 60
"""Short lines that recur within this distance are page headers or names of speakers."""
CODE_INDENT_COLUMNS = 4
MIN_TABLE_LINES = 2

_RULE = re.compile(
    r"(?:[*#~•·⁂❦❧◆◇○●■□✻✽†§]|(?:[-=_*~#.•·+^:◆◇○●✻]\s*){3,}|(?:[*~•·]\s+){1,}[*~•·])\Z"
)
_RULE_CHARACTERS = "*#~•·⁂❦❧◆◇○●■□✻✽†§-=_.+^:"
_ISOLATED_RULE_CHARACTERS = 2
"""A shorter rule needs blank lines around it."""
_NUMBER_WORDS = (
    "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen twenty thirty forty fifty first second third fourth fifth "
    "sixth seventh eighth ninth tenth last"
).replace(" ", "|")
_NAMED_NUMBER = re.compile(
    rf"(?:(?:the\s+)?(?P<division>part|book|volume|chapter|section|appendix|act|scene|canto|letter"
    rf"|kapitel|teil|chapitre|partie|cap[ií]tulo|parte|capitolo|глава|часть)\s+"
    rf"(?:\d{{1,3}}|[ivxlc]{{1,8}}|[a-h]|(?:{_NUMBER_WORDS})(?:[- ](?:{_NUMBER_WORDS}))?)"
    rf"(?![\w'’])[.:)]?|(?P<chinese>第[\d一二三四五六七八九十百]{{1,5}}[章节節回部篇]))"
    rf"(?P<title>\s*[-–—:.]?\s*\S.*)?\Z",
    re.I,
)
_DECIMAL_NUMBER = re.compile(
    r"(?:§\s*)?(?P<number>\d{1,3}(?:\.\d{1,3}){0,5})(?P<mark>[.):]?)\s+(?P<title>\S.*)\Z"
)
_ROMAN_NUMBER = re.compile(
    r"(?P<number>[IVXLC]{1,8})(?P<mark>\.?)(?:\s*[-–—:]?\s+(?P<title>\S.*))?\Z"
)
_ROMAN_VALUES = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100}
_CAPTION = re.compile(r"(?:fig(?:ure|s)?|tab(?:le)?|listing|plate|illustration|photo)\b", re.I)
# A line of a table of contents, of a table, or in brackets: "[Illustration]".
_NO_TITLE = re.compile(r"\S\s{3,}\S|[.…]{3,}|(?:\. ){2,}|\[.*\]\Z")
_HEADING_START = re.compile(r"[\w(\"“‘«¿¡\[]")
_ITEM = re.compile(r"(?:[-*•‣◦·▪▫●○+]|\(?\d{1,3}[.)]|\(?[a-zA-Z]\)|[a-z]\.)\s")
_ITEM_CHARACTERS = "-*•‣◦·▪▫●○+(0123456789"
_GRID_LINE = re.compile(r"\+(?:[-=]+\+)+\Z")
_SIMPLE_TABLE_LINE = re.compile(r"={2,}(?:\s+={2,})+\Z")
_CODE_SIGN = re.compile(
    r"[;{}]\s*\Z|\A(?:\$|>>>|\.\.\.|#|//|/\*|<\w|</|def |class |import |from \w+ import |return\b"
    r"|if .*:\Z|for .*:\Z|else:|try:|function |var |let |const |#include|--\w)"
    r"|\w\(.*\)\s*:?\Z|\w\s*(?:=|:=|\+=|==|->|=>)\s*\S|\w::\w"
)
_CLOSED_CLASS_LIST = """
    a an and as at but by for from if in into is it nor of off on onto or out over so than
    that the to up via vs was were when with yet de la le les el los du des di da der die
    das und von et y e en zu
"""
_CLOSED_CLASS_WORDS = frozenset(_CLOSED_CLASS_LIST.split())
_CONTINUE, _BEGIN = 2, 1


class _PlainLines:
    """Kinds and levels of the lines of a text, filled by one rule after the other."""

    def __init__(self, lines: LineTable) -> None:
        count = len(lines)
        self.lines = lines
        self.kinds = np.zeros(count, np.int64)
        self.levels = np.zeros(count, np.int64)
        self.forced = np.zeros(count, np.int8)
        """`_BEGIN`: a block begins here; `_CONTINUE`: none begins; 0: blank lines and wrapping
        decide."""
        self.contents: dict[int, int] = {}
        """Line of the title, by the first line of a heading that begins with an overline."""
        self.underlines = find_underlines(lines)
        is_last = np.arange(count) == count - 1
        self.has_blank_before = (lines.blank_lines > 0) | (np.arange(count) == 0)
        self.has_blank_after = np.append(self.has_blank_before[1:], True) | is_last

    def mark_run(self, first: int, last: int, kind: BlockKind) -> None:
        """Make the lines first … last − 1 one block."""
        self.kinds[first:last] = kind
        self.forced[first] = _BEGIN
        self.forced[first + 1 : last] = _CONTINUE
        self.forced[last : last + 1] = _BEGIN

    def mark_heading(self, index: int, level: int, *, over: int = 0, under: int = 0) -> None:
        """Make a line a heading; `over` and `under` are the lines of its overline, underline."""
        self.mark_run(index - over, index + 1 + under, BlockKind.HEADING)
        self.levels[index - over : index + 1 + under] = min(level, 6)
        if over:
            self.contents[index - over] = index


def parse_plain(text: str, *, keep_wrapped: bool = False) -> ParsedText:
    """Blocks of a plain text.

    With `keep_wrapped`, only blank lines, headings, turns and the like end a paragraph; otherwise a
    block also ends at list items and where a line ends early.
    """
    lines = find_lines(text)
    if not len(lines):
        return ParsedText(text, lines.codes, BlockTable.from_blocks([]))
    marked = _PlainLines(lines)
    _mark_tables(marked)
    _mark_code(marked)
    underlined_count = _mark_underlined_headings(marked)
    _mark_rules(marked)
    speakers = _find_speakers(marked)
    if underlined_count < MIN_UNDERLINED_HEADINGS:
        _mark_titled_headings(marked, speakers)
    return ParsedText(text, lines.codes, _build_blocks(marked, speakers, keep_wrapped))


def _build_blocks(marked: _PlainLines, speakers: dict[int, int], keep_wrapped: bool) -> BlockTable:
    """Join lines to blocks."""
    lines = marked.lines
    begins = marked.has_blank_before.copy() if keep_wrapped else mark_hard_breaks(lines)
    begins[list(speakers)] = True
    begins[marked.forced == _BEGIN] = True
    begins[marked.forced == _CONTINUE] = False
    begins[0] = True
    first = np.flatnonzero(begins)
    last = np.append(first[1:], len(lines)) - 1
    start, end = lines.starts[first], lines.ends[last]
    content_start, content_end = start.copy(), end.copy()
    is_heading = marked.kinds[first] == BlockKind.HEADING
    for block in np.flatnonzero(is_heading).tolist():
        title = marked.contents.get(int(first[block]), int(first[block]))
        content_start[block], content_end[block] = lines.starts[title], lines.ends[title]
    is_item = np.zeros(len(lines), bool)
    for index in find_candidates(lines, _ITEM_CHARACTERS, letters=True):
        is_item[index] = _ITEM.match(lines.line(index)) is not None
    is_turn = np.zeros(len(lines), bool)
    previous = -1
    for index, speaker in speakers.items():
        is_turn[index] = speaker != previous
        previous = speaker
    is_prose = marked.kinds[first] == BlockKind.PROSE
    return BlockTable(
        start=start,
        end=end,
        content_start=content_start,
        content_end=content_end,
        kind=marked.kinds[first],
        level=marked.levels[first],
        blank_lines=lines.blank_lines[first],
        indent=lines.indents[first],
        is_item=is_item[first] & is_prose,
        is_turn=is_turn[first],
        follows_break=lines.follows_form_feed[first],
    )


def _runs(indices: Iterable[int]) -> list[tuple[int, int]]:
    """First and last + 1 of each run of consecutive numbers."""
    values = np.asarray(list(indices), np.int64)
    if not len(values):
        return []
    edges = np.flatnonzero(np.diff(values) != 1) + 1
    return [(int(run[0]), int(run[-1]) + 1) for run in np.split(values, edges)]


def _mark_tables(marked: _PlainLines) -> None:
    """Tables of `|` and `+---+`, reST's simple tables, and lines of columns set by tabs."""
    lines = marked.lines
    bars = [
        index
        for index in find_candidates(lines, "|+")
        if lines.last_characters[index] in (ord("|"), ord("+"))
        and (lines.line(index).count("|") > 1 or _GRID_LINE.match(lines.line(index)))
    ]
    for first, last in _runs(bars):
        for low, high in _split_at(first, last, marked.has_blank_before):
            if high - low >= MIN_TABLE_LINES:
                marked.mark_run(low, high, BlockKind.TABLE)
    borders = [
        index
        for index in find_candidates(lines, "=")
        if lines.last_characters[index] == ord("=") and _SIMPLE_TABLE_LINE.match(lines.line(index))
    ]
    position = 0
    while position + 1 < len(borders):
        # A table has a border above, one below, and often one below its head. Blank lines may lie
        # between its rows, but none directly before its last border.
        low, high = borders[position], borders[position + 1]
        last = position + 1
        if (
            position + 2 < len(borders)
            and not marked.has_blank_after[high]
            and not marked.has_blank_before[borders[position + 2]]
        ):
            last, high = position + 2, borders[position + 2]
        marked.mark_run(low, high + 1, BlockKind.TABLE)
        position = last + 1
    if "\t" in lines.text:
        tabs = np.flatnonzero(lines.codes == ord("\t"))
        counts = np.searchsorted(tabs, lines.ends) - np.searchsorted(tabs, lines.starts)
        for first, last in _runs(np.flatnonzero(counts >= 1)):
            for low, high in _split_at(first, last, marked.has_blank_before):
                if high - low > MIN_TABLE_LINES and np.ptp(counts[low:high]) == 0:
                    marked.mark_run(low, high, BlockKind.TABLE)


def _split_at(first: int, last: int, begins: np.ndarray) -> list[tuple[int, int]]:
    """Divide a range of lines where `begins` is True."""
    cuts = [first, *(np.flatnonzero(begins[first + 1 : last]) + first + 1).tolist(), last]
    return list(pairwise(cuts))


def _mark_code(marked: _PlainLines) -> None:
    """Indented blocks after `::` (reST), and indented blocks that look like code."""
    lines = marked.lines
    indented = np.flatnonzero((lines.indents >= 2) & (marked.kinds == 0))
    for first, last in _runs(indented):
        after_colons = first > 0 and lines.line(first - 1).endswith("::")
        if after_colons and lines.indents[first] > lines.indents[first - 1]:
            shallower = lines.indents[first:last] <= lines.indents[first - 1]
            stop = first + int(np.argmax(shallower)) if shallower.any() else last
            marked.mark_run(first, stop, BlockKind.CODE)
            continue
        if not marked.has_blank_before[first] or first == 0:
            continue
        is_code = lines.indents[first:last] >= CODE_INDENT_COLUMNS
        if is_code.all():
            signs = sum(
                _CODE_SIGN.search(lines.line(index)) is not None for index in range(first, last)
            )
            if 2 * signs >= last - first:
                marked.mark_run(first, last, BlockKind.CODE)


def _mark_underlined_headings(marked: _PlainLines) -> int:
    """Headings with a line of `===` below, or above and below; the number of them.

    A style of lines is a level.
    """
    lines, levels = marked.lines, dict[tuple[int, bool], int]()
    count = 0
    for under in np.flatnonzero(marked.underlines & (marked.kinds == 0)).tolist():
        index = under - 1
        if index < 0 or marked.kinds[index] or marked.underlines[index]:
            continue
        if marked.has_blank_before[under]:
            continue
        character = int(lines.first_characters[under])
        has_overline = bool(
            index > 0
            and marked.underlines[index - 1]
            and lines.first_characters[index - 1] == character
            and lines.widths[index - 1] == lines.widths[under]
            and not marked.has_blank_before[index]
        )
        if not (has_overline or marked.has_blank_before[index] or marked.forced[index] == _BEGIN):
            continue
        title = lines.line(index)
        if (
            len(title) <= MAX_HEADING_CHARACTERS
            and lines.widths[under] >= MIN_UNDERLINE_SHARE * len(title)
            and title[-1] not in ".,;"
            and any(map(str.isalnum, title))
        ):
            level = levels.setdefault((character, has_overline), len(levels) + 1)
            marked.mark_heading(index, level, over=int(has_overline), under=1)
            count += 1
    return count


def _mark_rules(marked: _PlainLines) -> None:
    """Lines of marks only: `* * *`, `-----`, a single `#` between blank lines."""
    lines = marked.lines
    for index in find_candidates(lines, _RULE_CHARACTERS):
        is_isolated = marked.has_blank_before[index] and marked.has_blank_after[index]
        if marked.kinds[index] or lines.widths[index] > MAX_HEADING_CHARACTERS:
            continue
        if lines.widths[index] <= _ISOLATED_RULE_CHARACTERS and not is_isolated:
            continue
        if _RULE.match(lines.line(index)):
            marked.mark_run(index, index + 1, BlockKind.RULE)


def _find_speakers(marked: _PlainLines) -> dict[int, int]:
    """Lines at which speakers' turns begin, with numbers of the speakers."""
    lines = marked.lines
    if lines.text.count(":") + lines.text.count("：") >= MIN_TURNS:
        colons = np.flatnonzero((lines.codes == ord(":")) | (lines.codes == ord("：")))
        following = colons[np.minimum(np.searchsorted(colons, lines.starts), len(colons) - 1)]
        distances = following - lines.starts
        is_candidate = (distances > 0) & (
            distances < np.minimum(lines.widths, MAX_TURN_MARK_CHARACTERS)
        )
    else:
        is_candidate = np.zeros(len(lines), bool)
    is_candidate |= lines.first_characters == ord("<")
    rows = np.flatnonzero(is_candidate & (marked.kinds == 0))
    candidates = zip(
        rows.tolist(), lines.starts[rows].tolist(), lines.ends[rows].tolist(), strict=True
    )
    return find_turns(lines.text, candidates, int(lines.paragraph_ids[-1]) + 1)


def _mark_titled_headings(marked: _PlainLines, speakers: dict[int, int]) -> None:
    """Headings known by their text: numbered, in capitals, or short lines between blank lines."""
    lines = marked.lines
    is_short = (
        (lines.widths <= MAX_HEADING_CHARACTERS)
        & (marked.kinds == 0)
        & marked.has_blank_before
        & ~np.isin(lines.last_characters, encode_code_points(",;"))
    )
    is_short[list(speakers)] = False
    rows = np.flatnonzero(is_short).tolist()
    titles = {index: lines.line(index) for index in rows}
    titles = {
        index: title
        for index, title in titles.items()
        if _HEADING_START.match(title)
        and len(title.split()) <= MAX_HEADING_WORDS
        and not _NO_TITLE.search(title)
    }
    repeated = _find_repeated(titles)
    titles = {index: title for index, title in titles.items() if index not in repeated}
    _mark_numbered(marked, titles)
    # Below chapters, other headings are parts of chapters.
    level = 1 + int(marked.levels.max())
    _mark_capitals(marked, titles, level)
    _mark_short_lines(marked, titles, 1 + int(marked.levels.max()))


def _find_repeated(titles: dict[int, str]) -> set[int]:
    """Lines whose text recurs at short distances: page headers, names of speakers."""
    lines_by_title = defaultdict(list)
    for index, title in titles.items():
        lines_by_title[title].append(index)
    return {
        index
        for indices in lines_by_title.values()
        if len(indices) > 2 and np.median(np.diff(indices)) < REPEAT_DISTANCE_LINES
        for index in indices
    }


def _mark_numbered(marked: _PlainLines, titles: dict[int, str]) -> None:
    """`Chapter 7`, `2.1 Methods`, `IV. Results`."""
    numbers: dict[int, tuple[str, int, int, bool]] = {}
    has_parts = False
    for index, title in titles.items():
        is_isolated = bool(marked.has_blank_after[index])
        if match := _NAMED_NUMBER.match(title):
            rest = (match["title"] or "").strip(" -–—:.")
            # "Part one of the book was lost" is a sentence.
            if rest and rest[0].islower():
                continue
            division = (match["division"] or "chapter").lower()
            has_parts |= division in ("part", "book", "volume")
            level = {"part": 1, "book": 1, "volume": 1, "section": 3, "scene": 3}.get(division, 2)
            if is_isolated or rest.isupper() or not rest:
                marked.mark_heading(index, level)
        elif is_isolated and (match := _DECIMAL_NUMBER.match(title)):
            parts = match["number"].split(".")
            if _is_title(match["title"]):
                numbers[index] = (
                    match["number"].rpartition(".")[0],
                    len(parts),
                    int(parts[-1]),
                    bool(match["mark"]),
                )
        elif is_isolated and (match := _ROMAN_NUMBER.match(title)):
            rest = match["title"] or ""
            if (not rest and title != "I") or (rest and match["mark"] and _is_title(rest)):
                numbers[index] = ("roman", 1, _parse_roman(match["number"]), True)
    if not has_parts:
        # Chapters are the highest level of a text without parts.
        is_named = (marked.kinds == BlockKind.HEADING) & ~_is_underlined(marked)
        marked.levels[is_named] = np.maximum(marked.levels[is_named] - 1, 1)
    for index in _select_sequences(marked, numbers):
        marked.mark_heading(index, numbers[index][1])


def _is_underlined(marked: _PlainLines) -> np.ndarray:
    """True for the lines of headings that have an underline."""
    lines = np.zeros(len(marked.kinds), bool)
    under = np.flatnonzero(marked.underlines & (marked.kinds == BlockKind.HEADING))
    for shift in (0, 1, 2):
        lines[np.maximum(under - shift, 0)] = True
    return lines & (marked.kinds == BlockKind.HEADING)


def _select_sequences(
    marked: _PlainLines, numbers: dict[int, tuple[str, int, int, bool]]
) -> list[int]:
    """Numbered lines that are headings: in a sequence, and with text between them.

    Lines of one sequence that follow each other directly are the items of a list.
    """
    ids = marked.lines.paragraph_ids
    series: dict[tuple[str, int], list[int]] = defaultdict(list)
    for index, (parent, depth, _, _) in numbers.items():
        series[parent, depth].append(index)
    selected = []
    for indices in series.values():
        is_item = set()
        for left, right in pairwise(indices):
            if ids[right] == ids[left] + 1:
                is_item |= {left, right}
        for position, index in enumerate(indices):
            if index in is_item:
                continue
            _, depth, number, has_mark = numbers[index]
            neighbours = [
                numbers[indices[other]][2]
                for other in (position - 1, position + 1)
                if 0 <= other < len(indices)
            ]
            in_sequence = any(abs(number - other) == 1 for other in neighbours)
            if depth > 1 or in_sequence or (number == 1 and has_mark and _has_prose(marked, index)):
                selected.append(index)
    return selected


def _mark_capitals(marked: _PlainLines, titles: dict[int, str], level: int) -> None:
    """Short lines in capitals; in man pages, the text below is indented."""
    lines = marked.lines
    capitals = {
        index: title
        for index, title in titles.items()
        if title.isupper() and sum(map(str.isalpha, title)) >= 3 and not marked.kinds[index]
    }
    if len(capitals) > MAX_CAPITAL_LINE_SHARE * max(int(lines.paragraph_ids[-1]) + 1, 3):
        # A text in capitals; the share is of paragraphs, because candidates begin one.
        multi_line = sum(1 for index in capitals if not marked.has_blank_after[index])
        if multi_line > len(capitals) / 2 and not _is_man_page(marked, capitals):
            return
    for index, title in capitals.items():
        if title[-1] in ":!…" or _CAPTION.match(title):
            continue
        if marked.has_blank_after[index]:
            marked.mark_heading(index, level)
        elif index + 1 < len(lines):
            below = lines.line(index + 1)
            is_indented = lines.indents[index + 1] > lines.indents[index]
            if is_indented or (not below.isupper() and title[-1] != "." and below[0].isupper()):
                marked.mark_heading(index, level)


def _is_man_page(marked: _PlainLines, capitals: dict[int, str]) -> bool:
    """True if the lines below most of the lines in capitals are indented."""
    indents = marked.lines.indents
    below = [indents[index + 1] > indents[index] for index in capitals if index + 1 < len(indents)]
    return 2 * sum(below) > len(below)


def _mark_short_lines(marked: _PlainLines, titles: dict[int, str], level: int) -> None:
    """Short lines between blank lines, before a paragraph of prose."""
    ids = marked.lines.paragraph_ids
    # A text with chapters, or headings in capitals, has no headings in lower case.
    other_headings = int((marked.kinds == BlockKind.HEADING).sum())
    candidates = [
        index
        for index, title in titles.items()
        if marked.has_blank_after[index]
        and not marked.kinds[index]
        and _is_title(title)
        and (other_headings < MIN_OTHER_HEADINGS or _is_title_case(title))
    ]
    paragraphs = {int(ids[index]) for index in candidates}
    headings: list[int] = []
    # From the end, because a heading may be above another one.
    for index in reversed(candidates):
        paragraph = int(ids[index])
        # A run of short lines is a verse, an address or a list.
        is_run = paragraph - 1 in paragraphs and paragraph - 2 in paragraphs
        if is_run or _CAPTION.match(titles[index]):
            continue
        if _has_prose(marked, index) or (headings and index + 1 == headings[-1]):
            headings.append(index)
    if len(headings) < MIN_HEADING_SHARE * len(candidates):
        return
    for index in headings:
        marked.mark_heading(index, level)


def _has_prose(marked: _PlainLines, index: int) -> bool:
    """True if the paragraph below a line is of sentences, or is a heading, table, code or list."""
    lines = marked.lines
    if index + 1 >= len(lines):
        return False
    below = index + 1
    if marked.kinds[below] in (BlockKind.HEADING, BlockKind.TABLE, BlockKind.CODE):
        return True
    if _ITEM.match(lines.line(below)):
        return True
    last = int(np.searchsorted(lines.paragraph_ids, lines.paragraph_ids[below], side="right")) - 1
    is_long = last > below or lines.widths[below] >= MIN_PROSE_CHARACTERS
    return bool(is_long) and chr(lines.last_characters[last]) in ".!?…:。！？”\"')»]"


def _is_title(text: str) -> bool:
    """True for a short text that begins with a capital and does not end like a sentence."""
    words = text.split()
    first = text.lstrip('"“‘«¿¡([')[:1]
    return (
        bool(first)
        and (first.isupper() or (first.isalpha() and not first.islower()))
        and text.rstrip("'\"’”»")[-1:] not in ".!,;:…。！，；："
        and (text[-1] not in "?？" or len(words) <= 8)
        and text[0] not in '"“‘«'
        and len(words) <= MAX_HEADING_WORDS
        and any(len(word) > 1 for word in words)
    )


def _is_title_case(text: str) -> bool:
    """True if all words but short function words begin with a capital or digit."""
    return all(
        not word[0].islower() or word.lower() in _CLOSED_CLASS_WORDS for word in text.split()
    )


def _parse_roman(number: str) -> int:
    values = [_ROMAN_VALUES[letter] for letter in number]
    return sum(
        -value if value < following else value
        for value, following in zip(values, [*values[1:], 0], strict=True)
    )
