"""Split text into elements (lines or sentences), detect headings, make titles.

A terminator is a full stop, question mark, exclamation mark or ellipsis. It ends a sentence unless
it is part of an abbreviation, an initial, a number or an ellipsis within a sentence. Only a few
characters around each terminator are inspected, so the time is linear in the length of the text.
The rules for the full stop are made for languages that are written as English is; the full stops of
other scripts have no other use, and always end a sentence.

Text without punctuation (transcripts) is divided into windows of words, so that no element is huge.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Literal

import numpy as np

from neural.native.library import NativeFunction, native_available
from neural.tasks.segmentation.character_classes import (
    CLOSERS,
    OPENERS,
    TERMINATORS,
    classify_characters,
)
from neural.tasks.segmentation.line_wrapping import (
    encode_code_points,
    find_lines,
    is_marked_heading,
    mark_hard_breaks,
)

ElementUnit = Literal["lines", "sentences", "paragraphs"]
Span = tuple[int, int]
"""Start and end of a part of the text, in characters."""

_find_sentence_ends = NativeFunction("find_sentence_ends", "pp ppi p ppp pp p")
_ASK = 2
"""Verdict of the kernel: `_is_sentence_end` decides; 1 is the end of a sentence."""
_SHAPE_LENGTHS = 9
"""Longest abbreviation + 1; the same in sentence_ends.cpp."""
MAX_SENTENCE_WORDS = 80
"""A longer sentence is divided into windows of words."""
WINDOW_WORDS = 20
MAX_SENTENCE_CHARACTERS = 800
"""A longer sentence is divided into windows, even if it has few words."""
WINDOW_CHARACTERS = 200
WINDOW_SLACK = 0.45
"""Share of a window's size by which its end may move to a comma."""
_PAUSES = ",;:—–，、；：،؛"


def find_elements(text: str, unit: ElementUnit = "sentences") -> list[Span]:
    """Spans of the elements in order: not empty, not overlapping, without surrounding white space.

    Headings, code and markup are not recognized: `structure.parse_structure` does. A leading byte
    order mark counts as white space. Time and memory are linear in the text.
    """
    lines = find_lines(text)
    if not len(lines):
        return []
    if unit == "lines":
        starts, ends = lines.starts, lines.ends
    else:
        is_first = lines.blank_lines > 0 if unit == "paragraphs" else mark_hard_breaks(lines)
        is_first[0] = True
        first = np.flatnonzero(is_first)
        starts, ends = lines.starts[first], lines.ends[np.append(first[1:], len(lines)) - 1]
        if unit == "sentences":
            starts, ends, _ = split_sentences(text, starts, ends, lines.codes)
    return list(zip(starts.tolist(), ends.tolist(), strict=True))


def split_sentences(
    text: str, block_starts: np.ndarray, block_ends: np.ndarray, codes: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Starts and ends of the sentences of all blocks, and the index of the block of each.

    Blocks are paragraphs or parts of them, in order, without white space around them. `codes` are
    the code points of the text, if known. Sentences that are too long are divided into windows.
    """
    if not len(block_starts):
        return block_starts, block_ends, np.zeros(0, np.int64)
    if _ARMENIAN_LETTER in text:
        # Armenian is often typed with a colon for its full stop.
        text, codes = _ARMENIAN_COLON.sub("։", text), None
    if native_available():
        codes = encode_code_points(text) if codes is None else codes
        sentences = _split_natively(text, codes, block_starts, block_ends)
    else:
        sentences = _split_plainly(text, block_starts, block_ends)
    return _divide_long_sentences(text, *sentences)


def _split_plainly(
    text: str, block_starts: np.ndarray, block_ends: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sentences of all blocks, in plain Python."""
    sentences = []
    for block, (start, end) in enumerate(
        zip(block_starts.tolist(), block_ends.tolist(), strict=True)
    ):
        # Blocks and sentence ends have no white space before their end, so only the start of the
        # next sentence is searched.
        for stop in find_sentence_ends(text, start, end):
            sentences.append((start, stop, block))
            start = stop
            while start < end and text[start].isspace():
                start += 1
    starts, ends, blocks = np.array(sentences, np.int64).T.copy()
    return starts, ends, blocks


def _split_natively(
    text: str, codes: np.ndarray, block_starts: np.ndarray, block_ends: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Like `_split_plainly`; a kernel decides most cases, `_is_sentence_end` the others."""
    count = len(block_starts)
    # The entry after the last block is not used as a start.
    block_starts = np.append(block_starts, len(text)).astype(np.int64)
    block_ends = block_ends.astype(np.int64)
    size = sum(map(text.count, TERMINATORS)) + count
    matches, ends, next_starts = np.empty((3, size), np.int64)
    block_ids, verdicts = np.empty(size, np.int32), np.empty(size, np.uint8)
    result_count, shapes = np.zeros(1, np.int64), _abbreviation_shapes()
    _find_sentence_ends(
        codes.ctypes.data,
        classify_characters(codes).ctypes.data,
        block_starts.ctypes.data,
        block_ends.ctypes.data,
        count,
        shapes.ctypes.data,
        *(
            array.ctypes.data
            for array in (matches, ends, next_starts, block_ids, verdicts, result_count)
        ),
    )
    verdicts = verdicts[: result_count[0]]
    for index in np.flatnonzero(verdicts == _ASK).tolist():
        start, end = int(block_starts[block_ids[index]]), int(block_ends[block_ids[index]])
        match = _TERMINATOR.match(text, matches[index], end)
        assert match is not None
        verdicts[index] = _is_sentence_end(text, start, end, match)
    is_end = np.flatnonzero(verdicts)
    starts = np.concatenate([block_starts[:1], next_starts[is_end[:-1]]])
    return starts, ends[is_end], block_ids[is_end].astype(np.int64)


def _divide_long_sentences(
    text: str, starts: np.ndarray, ends: np.ndarray, blocks: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Replace sentences that are too long by windows of words, or of characters."""
    # A sentence of that many words has at least one letter and one space for each.
    candidates = np.flatnonzero(ends - starts >= 2 * MAX_SENTENCE_WORDS)
    windows: dict[int, list[Span]] = {}
    for index in candidates.tolist():
        start, end = int(starts[index]), int(ends[index])
        if _is_long(text, start, end):
            windows[index] = list(_divide_sentence(text, start, end))
    if not windows:
        return starts, ends, blocks
    counts = np.ones(len(starts), np.int64)
    counts[list(windows)] = [len(spans) for spans in windows.values()]
    first = np.cumsum(counts) - counts
    starts, ends = np.repeat(starts, counts), np.repeat(ends, counts)
    for index, spans in windows.items():
        edges = np.array(spans, np.int64)
        starts[first[index] : first[index] + len(spans)] = edges[:, 0]
        ends[first[index] : first[index] + len(spans)] = edges[:, 1]
    return starts, ends, np.repeat(blocks, counts)


def _is_long(text: str, start: int, end: int) -> bool:
    words = text[start:end].split(None, MAX_SENTENCE_WORDS)
    return end - start > MAX_SENTENCE_CHARACTERS or len(words) > MAX_SENTENCE_WORDS


def _divide_sentence(text: str, start: int, end: int) -> Iterator[Span]:
    """Parts of a long sentence: at full stops before lower-case words, as in chats; then windows."""
    stops = [
        match.end()
        for match in _SOFT_STOP.finditer(text, start, end)
        if _is_soft_end(text, start, match)
    ]
    for stop in [*stops, end]:
        if _is_long(text, start, stop):
            yield from divide_into_windows(text, start, stop)
        else:
            yield start, stop
        start = stop
        while start < end and text[start].isspace():
            start += 1


def _is_soft_end(text: str, start: int, match: re.Match[str]) -> bool:
    """True for a terminator before a lower-case letter and not after an abbreviation."""
    following = _NEXT_CHARACTER.match(text, match.end())
    before = text[max(start, match.start() - _LOOKBEHIND_CHARACTERS) : match.start()]
    word = _NO_WORD.split(before)[-1].lower()
    return (
        following is not None
        and following[1].islower()
        and word not in NONFINAL_ABBREVIATIONS | POSSIBLY_FINAL_ABBREVIATIONS
    )


def divide_into_windows(text: str, start: int, end: int) -> Iterator[Span]:
    """Yield windows of about 20 words, or of 200 characters where there is no white space.

    text[start:end] has no white space around it. A window ends after a comma if one is near.
    """
    words = np.array([match.span() for match in _NO_SPACE.finditer(text, start, end)], np.int64)
    is_pause = np.array([text[stop - 1] in _PAUSES for stop in words[:, 1].tolist()])
    pauses = np.flatnonzero(is_pause) + 1  # a window may begin at the word after a pause
    cuts = _place_cuts(len(words), WINDOW_WORDS, pauses)
    for low, high in zip([0, *cuts], [*cuts, len(words)], strict=True):
        window_start, window_end = int(words[low, 0]), int(words[high - 1, 1])
        if window_end - window_start <= 2 * WINDOW_CHARACTERS:
            yield window_start, window_end
            continue
        yield from _divide_characters(text, window_start, window_end)


def _divide_characters(text: str, start: int, end: int) -> Iterator[Span]:
    """Yield windows of about 200 characters; they end after a comma or at white space if near."""
    pauses = [match.end() - start for match in _PAUSE_OR_SPACE.finditer(text, start, end - 1)]
    cuts = _place_cuts(end - start, WINDOW_CHARACTERS, np.array(pauses, np.int64))
    for low, high in zip([0, *cuts], [*cuts, end - start], strict=True):
        window_start, window_end = start + low, start + high
        while window_end > window_start and text[window_end - 1].isspace():
            window_end -= 1
        while window_start < window_end and text[window_start].isspace():
            window_start += 1
        if window_end > window_start:
            yield window_start, window_end


def _place_cuts(size: int, step: int, preferred: np.ndarray) -> list[int]:
    """Cuts at about every `step` units, moved to the nearest preferred position if one is near."""
    nominal = np.arange(step, max(size - step // 2, step), step)
    nominal = nominal[nominal < size]
    if not len(preferred) or not len(nominal):
        return nominal.tolist()
    right = np.searchsorted(preferred, nominal)
    before = preferred[np.maximum(right - 1, 0)]
    after = preferred[np.minimum(right, len(preferred) - 1)]
    nearest = np.where(np.abs(before - nominal) <= np.abs(after - nominal), before, after)
    is_near = np.abs(nearest - nominal) <= WINDOW_SLACK * step
    cuts = np.where(is_near & (nearest > 0) & (nearest < size), nearest, nominal)
    return cuts.tolist()


_ARMENIAN_LETTER = "ա"
_ARMENIAN_COLON = re.compile(r"(?<=[\u0561-\u0587»]):(?=\s)")
_NO_SPACE = re.compile(r"\S+")
_NO_WORD = re.compile(r"\W")
_PAUSE_OR_SPACE = re.compile(rf"[{_PAUSES}\s]")
_SOFT_STOP = re.compile(rf"(?<=\w\w)[.!?…]+[{re.escape(CLOSERS)}]*(?=\s)")
"""Terminators after a word of two letters or more."""


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
# Group 1 is the first character after white space, opening quotes and brackets, and the dash with
# which a speech begins in dialogues.
_NEXT_CHARACTER = re.compile(
    rf"\s*[{re.escape(OPENERS)}]*(?:[-–—]\s[\s{re.escape(OPENERS)}]*)?(.?)", re.S
)
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
        before = text[max(start, match.start() - 2) : match.start()]
        if terminator[0] in ".…" and next_character and before[1:].isspace():
            # "1 … 5" and "1 … −5" are ranges
            return not (before[0].isdigit() and (next_character.isdigit() or next_character == "−"))
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
