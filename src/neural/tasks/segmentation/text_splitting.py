"""Split text into elements (lines or sentences), unwrap lines, detect headings, make titles.

A terminator is a full stop, question mark, exclamation mark or ellipsis. It ends a sentence unless
it is part of an abbreviation, an initial, a number or an ellipsis within a sentence. Only a few
characters around each terminator are inspected, so the time is linear in the length of the text.
The rules are made for English and similar languages; Chinese and Japanese full stops always end a
sentence.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise
from typing import Literal

import numpy as np

from neural.native.library import NativeFunction, native_available
from neural.tasks.segmentation.character_classes import (
    CLOSERS,
    OPENERS,
    TERMINATORS,
    classify_characters,
)

ElementUnit = Literal["lines", "sentences"]
Span = tuple[int, int]
"""Start and end of a part of the text, in characters."""
LINE_ENDS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
"""The characters at which `str.splitlines` splits."""
# A line without surrounding white space, which all line ends are; blank lines do not match.
_LINE_PATTERN = re.compile(rf"\S(?:[^{LINE_ENDS}]*\S)?")

_find_sentence_ends = NativeFunction("find_sentence_ends", "pp ppi p ppp pp p")
_ASK = 2
"""Verdict of the kernel: `_is_sentence_end` decides; 1 is the end of a sentence."""
_SHAPE_LENGTHS = 9
"""Longest abbreviation + 1; the same in sentence_ends.cpp."""


def find_elements(text: str, unit: ElementUnit = "sentences") -> list[Span]:
    """Spans of the elements in order: not empty, not overlapping, without surrounding white space.

    A leading byte order mark counts as white space. Time and memory are linear in the text.
    """
    text_start = 1 if text.startswith("\ufeff") else 0
    lines = [match.span() for match in _LINE_PATTERN.finditer(text, text_start)]
    if unit == "lines":
        return lines
    blocks = list(find_blocks(text, lines))
    if native_available() and blocks:
        return _split_sentences_natively(text, blocks)
    return _split_sentences(text, blocks)


def _split_sentences(text: str, blocks: Sequence[Span]) -> list[Span]:
    """Spans of the sentences of all blocks, in plain Python."""
    sentences = []
    for start, end in blocks:
        # Blocks and sentence ends have no white space before their end, so only the start of the
        # next sentence is searched.
        for stop in find_sentence_ends(text, start, end):
            sentences.append((start, stop))
            start = stop
            while start < end and text[start].isspace():
                start += 1
    return sentences


def _split_sentences_natively(text: str, blocks: Sequence[Span]) -> list[Span]:
    """Like `_split_sentences`; a kernel decides most cases, `_is_sentence_end` the others."""
    characters = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    edges = np.array(blocks, np.int64)
    # The entry after the last block is not used as a start.
    block_starts, block_ends = np.append(edges[:, 0], len(text)), edges[:, 1].copy()
    size = sum(map(text.count, TERMINATORS)) + len(blocks)
    matches, ends, next_starts = np.empty((3, size), np.int64)
    block_ids, verdicts = np.empty(size, np.int32), np.empty(size, np.uint8)
    count, shapes = np.zeros(1, np.int64), _abbreviation_shapes()
    _find_sentence_ends(
        characters.ctypes.data,
        classify_characters(characters).ctypes.data,
        block_starts.ctypes.data,
        block_ends.ctypes.data,
        len(blocks),
        shapes.ctypes.data,
        *(array.ctypes.data for array in (matches, ends, next_starts, block_ids, verdicts, count)),
    )
    verdicts = verdicts[: count[0]]
    for index in np.flatnonzero(verdicts == _ASK).tolist():
        start, end = blocks[block_ids[index]]
        match = _TERMINATOR.match(text, matches[index], end)
        assert match is not None
        verdicts[index] = _is_sentence_end(text, start, end, match)
    is_end = np.flatnonzero(verdicts)
    starts = np.concatenate([block_starts[:1], next_starts[is_end[:-1]]])
    return list(zip(starts.tolist(), ends[is_end].tolist(), strict=True))


@cache
def _abbreviation_shapes() -> np.ndarray:
    """1 for every first letter and length that an abbreviation has, (26, 9); for the kernel."""
    shapes = np.zeros((26, _SHAPE_LENGTHS), np.uint8)
    for abbreviation in NONFINAL_ABBREVIATIONS | POSSIBLY_FINAL_ABBREVIATIONS:
        shapes[ord(abbreviation[0]) - ord("a"), len(abbreviation)] = 1
    return shapes


MAX_TITLE_CHARACTERS = 72
"""Maximum length of a title; longer ones are truncated between words."""
MAX_HEADING_WORDS = 12
"""A longer line without a heading mark (`#`) is not a heading."""
_MAX_HEADING_CHARACTERS = 100
"""A longer line without a heading mark is not a heading."""
_HEADING_MARK = re.compile(r"#{1,6}\s+(?=\S)")
_HEADING_NUMBER = re.compile(
    r"(?:\d{1,3}(?:\.\d{1,3}){0,5}[.):]?|[IVXLC]{1,7}[.)]"
    r"|(?:chapter|part|section)\s+[\divxlc]{1,7}\b[.:]?)\s+",
    re.I,
)
_LIST_ITEM = re.compile(r"(?:[-*•‣◦–—+]|\(?\d{1,3}[.)]|\(?[a-zA-Z][.)]|#{1,6}|>)\s")
_UNDERLINE = re.compile(r"([=\-~^*\"'`#+_])\1{2,}\Z")


def is_heading_underline(line: str) -> bool:
    """True for a line such as `=====`, which underlines the heading above it."""
    # The first condition is a fast path: it rejects nearly every line without the regex.
    return line[:3].count(line[0]) == 3 and _UNDERLINE.match(line) is not None


def is_list_item(line: str) -> bool:
    """True if a line begins with the mark of a list item, a heading or a quote."""
    return _LIST_ITEM.match(line) is not None


def is_marked_heading(line: str) -> bool:
    """True for a line such as `# Heading`, with one to six `#`."""
    return _HEADING_MARK.match(line) is not None


def is_numbered_heading(line: str) -> bool:
    """True for `2.1 Methods`, `IV. Results`, `Chapter 7: …`: a number and a short title."""
    match = _HEADING_NUMBER.match(line)
    title = line[match.end() :] if match else ""
    return bool(title) and title[0].isupper() and _has_heading_length(title)


def score_heading(line: str) -> float:
    """How much a line looks like a heading, from 0 to 1.

    0 is a long line or a sentence, 1 a marked or numbered heading. A short line scores 0.1 if it
    begins in lower case, else 0.25 to 0.75 by its share of capitalized words (rules of thumb).
    """
    if line[0] != "#" and not _has_heading_length(line):
        return 0.0  # fast path: nearly every line is a sentence
    if is_marked_heading(line) or is_numbered_heading(line):
        return 1.0
    words = line.split()
    capitalized_share = sum(word[0].isupper() or word[0].isdigit() for word in words) / max(
        1, len(words)
    )
    return 0.25 + 0.5 * capitalized_share if line[0].isupper() or line[0].isdigit() else 0.1


def make_title(elements: Sequence[str]) -> str:
    """Title of a segment: its first element with a letter or digit, without `#` and truncated."""
    first_text = next(
        (element for element in elements if any(map(str.isalnum, element))), elements[0]
    )
    line = " ".join(first_text.split())
    match = _HEADING_MARK.match(line)
    line = line[match.end() :].rstrip("# ") if match else line
    if len(line) <= MAX_TITLE_CHARACTERS:
        return line
    truncated = line[: MAX_TITLE_CHARACTERS - 1]
    return (truncated.rpartition(" ")[0] or truncated).rstrip(",;:–—- ") + "…"


def _has_heading_length(line: str) -> bool:
    """True for a short line that does not end like a sentence."""
    return (
        len(line) <= _MAX_HEADING_CHARACTERS
        and line[-1] not in ".!?,;…。！？"
        and len(line.split()) <= MAX_HEADING_WORDS
    )


# Terminators with the closing quotes and brackets after them. `''` after a space is a closing quote
# in text that was tokenized in the style of the Penn Treebank.
_TERMINATOR = re.compile(rf"[{TERMINATORS}]+[{re.escape(CLOSERS)}]*(?:\s''(?=\s))?")
# Group 1 is the first character after white space, opening quotes and brackets.
_NEXT_CHARACTER = re.compile(rf"\s*[{re.escape(OPENERS)}]*(.?)", re.S)
_CJK_TERMINATORS = frozenset("。！？｡")
_LOOKBEHIND_CHARACTERS = 24
"""Number of characters inspected before a full stop: enough for any abbreviation."""

_NONFINAL_LIST = """
    mr mrs ms mx dr prof rev fr st sr jr hon gen col maj capt cmdr lt sgt cpl pvt gov sen rep pres
    mt ft vs viz cf al eg ie ca approx fig figs eq eqs sec secs ch chap vol vols pp p no nos nr op
    ed eds trans tab ref refs para mme mlle m hr bzw z.b d.h u.a e.g i.e jan feb mar apr jun jul aug
    sep sept oct nov dec
"""
_POSSIBLY_FINAL_LIST = (
    "etc inc ltd co corp bros llc plc dept univ assn ave blvd rd sq est usw a.m p.m u.s u.k"
)
_STARTER_LIST = """
    the a an this that these those he she it they we you i his her its their our my there here in on
    at by for from with as when while after before if although though but and so however then thus
    since because what who how why where no not all some many most each one two both another such
"""
NONFINAL_ABBREVIATIONS = frozenset(_NONFINAL_LIST.split())
"""Abbreviations that never end a sentence, in lower case, without the last full stop."""
POSSIBLY_FINAL_ABBREVIATIONS = frozenset(_POSSIBLY_FINAL_LIST.split())
"""Abbreviations that end a sentence only if one of `SENTENCE_STARTERS` follows."""
SENTENCE_STARTERS = frozenset(_STARTER_LIST.split())
"""Words that often begin a sentence."""
_WORD = re.compile(r"[\w'’]+")


def find_sentence_ends(text: str, start: int, end: int) -> Iterator[int]:
    """Yield the end of each sentence in text[start:end], in order; the last one is `end`."""
    for match in _TERMINATOR.finditer(text, start, end):
        if match.end() >= end:
            break
        if _is_sentence_end(text, start, end, match):
            yield match.end()
    yield end


def _is_sentence_end(text: str, start: int, end: int, match: re.Match[str]) -> bool:
    """True if the terminator `match` ends a sentence of text[start:end]."""
    terminator = match.group()
    if not _CJK_TERMINATORS.isdisjoint(terminator):
        return True
    if not text[match.end()].isspace():
        return False  # 3.14, example.org, "…"—
    following = _NEXT_CHARACTER.match(text, match.end(), end)
    next_character = following.group(1) if following else ""
    # The last condition excludes "", which is in every string.
    if next_character.islower() or (next_character in ",;:)]}–—-…" and next_character):
        return False  # the sentence continues
    if terminator[0] != "." or terminator[:2] == "..":
        return True  # "!", "?" or an ellipsis before a capital
    # A single full stop: decide by the word before it.
    before = text[max(start, match.start() - _LOOKBEHIND_CHARACTERS) : match.start()]
    word = before[-1:].strip() and before.split()[-1].lstrip("\"'“‘«([{`*_—–-")
    if not word:
        return True  # white space before the full stop, as in tokenized text
    lower = word.lower()
    if len(word) == 1 and word.isalpha():
        return word == "I" and _follows_lowercase_word(before)  # "so did I." is not an initial
    if lower in NONFINAL_ABBREVIATIONS:
        return False
    # Short words with inner full stops, such as "Ph.D", are abbreviations, too.
    if lower in POSSIBLY_FINAL_ABBREVIATIONS or (
        "." in word and word.replace(".", "").isalpha() and len(word) <= 8
    ):
        return _is_sentence_starter(text, following)
    # A number at the start is that of a list item, as in "1. Introduction" or "iv. Results".
    return match.start() - len(word) != start or not (word.isdigit() or lower.strip("ivxlc") == "")


def _follows_lowercase_word(before: str) -> bool:
    """True if the second-to-last word of `before` begins with a lower-case letter."""
    words = before.split()
    return len(words) > 1 and words[-2][0].islower()


def _is_sentence_starter(text: str, following: re.Match[str] | None) -> bool:
    """True if the word at `following` (match of _NEXT_CHARACTER) often begins a sentence."""
    word = _WORD.match(text, following.start(1)) if following else None
    return word is not None and word.group().lower() in SENTENCE_STARTERS


WRAP_WIDTH_QUANTILE = 0.9
"""Quantile of the line widths that is taken as the wrap width.

Not the maximum, because a few lines (a long URL) may be wider than the wrap width.
"""
_LINE_END = re.compile(f"\r\n|[{LINE_ENDS}]")


def find_blocks(text: str, lines: Sequence[Span]) -> Iterator[Span]:
    """Join wrapped lines: yield the spans of paragraphs, headings and list items.

    `lines` are the spans of the lines that are not blank. A block ends at each hard break, a line
    break that the writer made on purpose and not to wrap a long line.
    """
    if not lines:
        return
    wrap_width = np.quantile([end - start for start, end in lines], WRAP_WIDTH_QUANTILE)
    for paragraph in _split_paragraphs(text, lines):
        is_unwrapped = _is_unwrapped(text, paragraph)
        block_start, block_end = paragraph[0]
        for (previous_start, _), (start, end) in pairwise(paragraph):
            previous_line = text[previous_start:block_end]
            if _is_hard_break(previous_line, text[start:end], wrap_width, is_unwrapped):
                yield block_start, block_end
                block_start = start
            block_end = end
        yield block_start, block_end


def _split_paragraphs(text: str, lines: Sequence[Span]) -> Iterator[list[Span]]:
    """Yield runs of lines without a blank line between them."""
    paragraph = [lines[0]]
    for (_, previous_end), (start, end) in pairwise(lines):
        if count_blank_lines(text[previous_end:start]):
            yield paragraph
            paragraph = []
        paragraph.append((start, end))
    yield paragraph


def _is_unwrapped(text: str, paragraph: Sequence[Span]) -> bool:
    """True if the line breaks of a paragraph are hard breaks, as in a poem.

    That is so if the first word of the next line would still fit on at least half of the lines; in
    a wrapped paragraph it never fits. Only lines before a lower-case word count, because titles and
    list items also end early in a wrapped paragraph.
    """
    widest = max(end - start for start, end in paragraph)
    has_space = [
        end - start + 1 + len(text[next_start:next_end].split(None, 1)[0]) <= widest
        for (start, end), (next_start, next_end) in pairwise(paragraph)
        if text[next_start].islower()
    ]
    return bool(has_space) and 2 * sum(has_space) >= len(has_space)


def _is_hard_break(previous_line: str, line: str, wrap_width: float, is_unwrapped: bool) -> bool:
    """True if the break between two lines is not a line wrap.

    `is_unwrapped` is the result of `_is_unwrapped` for their paragraph.
    """
    if is_heading_underline(line):
        return False  # the underline belongs to the heading above it
    if (
        is_unwrapped
        or is_list_item(line)
        or is_marked_heading(previous_line)
        or is_heading_underline(previous_line)
    ):
        return True
    first_word = line.split(None, 1)[0]
    # A hard break: the word would have fitted on the line before, and may begin a sentence.
    return len(previous_line) + 1 + len(first_word) <= wrap_width and not first_word[0].islower()


def get_indentation(gap: str) -> str:
    """The part of `gap` after its last line end; all of it if there is none.

    `gap` is the white space between two elements. The result is the indentation of the second one
    if that is on a new line.
    """
    # " " is a fast path for two sentences in one line.
    return gap if gap == " " else gap[max(map(gap.rfind, LINE_ENDS)) + 1 :]


def count_blank_lines(gap: str) -> int:
    """Number of blank lines in `gap`, the white space between two lines.

    A form feed (page break) counts as at least one blank line.
    """
    if gap in ("\n", "\r\n"):  # fast path for nearly every gap
        return 0
    return max(len(_LINE_END.findall(gap)) - 1, int("\f" in gap))
