"""Lines of a text, and which of their line breaks only wrap a long line.

Everything is computed for all lines together in NumPy; Python code runs only for the lines and gaps
that look unusual, so that long plain texts are cheap. A gap is the white space between two lines.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

LINE_ENDS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
"""The characters at which `str.splitlines` splits."""
TAB_COLUMNS = 8
"""Width of a tab, in characters."""
WRAP_WIDTH_QUANTILE = 0.9
"""Quantile of the line widths that is taken as the wrap width.

Not the maximum, because a few lines (a long URL) may be wider than the wrap width.
"""
MAX_COUNTED_LINES = 127
"""More blank lines, or columns of indentation, count as this many."""
MAX_WORD_CHARACTERS = 99
"""Longer words are not measured exactly: whether they fit on a line says nothing."""
# A line without surrounding white space, which all line ends are; blank lines do not match.
_LINE_PATTERN = re.compile(rf"\S(?:[^{LINE_ENDS}]*\S)?")
_LINE_END = re.compile(f"\r\n|[{LINE_ENDS}]")
_ITEM_MARK = re.compile(r"(?:[-*•‣◦–—+]|\(?\d{1,3}[.)]|\(?[a-zA-Z][.)]|#{1,6}|>)\s")
_HEADING_MARK = re.compile(r"#{1,6}\s+(?=\S)")
_UNDERLINE = re.compile(r"([=\-~^*\"'`#+_])\1{2,}\Z")
_UNDERLINE_CHARACTERS = "=-~^*\"'`#+_"
_ITEM_CHARACTERS = "-*•‣◦–—+(#>0123456789"


@dataclass(frozen=True, eq=False)
class LineTable:
    """The lines of a text that are not blank, without the white space around them."""

    text: str
    codes: np.ndarray
    """Code points of the text, uint32."""
    starts: np.ndarray
    """Index of the first character of each line, (n,)."""
    ends: np.ndarray
    """Index after the last character of each line, (n,)."""
    blank_lines: np.ndarray
    """Number of blank lines before each line; a form feed is at least one. 0 at the first line."""
    indents: np.ndarray
    """Columns of white space at the start of each line."""
    follows_form_feed: np.ndarray
    """True for the first line of a page."""

    def __len__(self) -> int:
        return len(self.starts)

    @cached_property
    def widths(self) -> np.ndarray:
        """Number of characters of each line."""
        return self.ends - self.starts

    @cached_property
    def first_characters(self) -> np.ndarray:
        """Code point of the first character of each line."""
        return self.codes[self.starts]

    @cached_property
    def last_characters(self) -> np.ndarray:
        """Code point of the last character of each line."""
        return self.codes[self.ends - 1]

    @cached_property
    def begins_lowercase(self) -> np.ndarray:
        """True for a line whose first character is a lower-case letter."""
        return check_characters(self.first_characters, str.islower)

    @cached_property
    def paragraph_ids(self) -> np.ndarray:
        """Number of the run of lines without blank lines between them."""
        return np.cumsum(self.blank_lines > 0)

    @cached_property
    def first_word_lengths(self) -> np.ndarray:
        """Number of characters of the first word of each line; longer words are cut off."""
        lengths = np.ones(len(self), np.int64)
        active, is_space = np.flatnonzero(self.widths > 1), _space_table()
        for _ in range(MAX_WORD_CHARACTERS):
            if not len(active):
                break
            following = self.codes[self.starts[active] + lengths[active]]
            active = active[~is_space[np.minimum(following, len(is_space) - 1)]]
            lengths[active] += 1
            active = active[lengths[active] < self.widths[active]]
        return lengths

    def line(self, index: int) -> str:
        """Text of one line."""
        return self.text[self.starts[index] : self.ends[index]]


def find_lines(text: str, codes: np.ndarray | None = None) -> LineTable:
    """Lines of a text that are not blank. A leading byte order mark counts as white space."""
    codes = encode_code_points(text) if codes is None else codes
    first = 1 if text.startswith("\ufeff") else 0
    spans = [match.span() for match in _LINE_PATTERN.finditer(text, first)]
    edges = np.array(spans, np.int64).reshape(-1, 2)
    starts, ends = edges[:, 0].copy(), edges[:, 1].copy()
    count = len(starts)
    blank_lines, indents = np.zeros((2, count), np.int64)
    follows_form_feed = np.zeros(count, bool)
    gap_starts = np.concatenate([[first], ends[:-1]]) if count else ends
    # A gap of one character is a line end: the fast path for nearly every gap.
    unusual = np.flatnonzero(starts - gap_starts != 1)
    for index, low, high in zip(
        unusual.tolist(), gap_starts[unusual].tolist(), starts[unusual].tolist(), strict=True
    ):
        gap = text[low:high]
        if gap == "\n\n":
            blank_lines[index] = 1
            continue
        if index:
            blank_lines[index] = min(count_blank_lines(gap), MAX_COUNTED_LINES)
        follows_form_feed[index] = "\f" in gap
        if gap and gap[-1] in " \t":
            indents[index] = min(measure_indent(gap), MAX_COUNTED_LINES)
    single = np.flatnonzero(codes[gap_starts[starts - gap_starts == 1]] == ord("\f"))
    if len(single):
        rows = np.flatnonzero(starts - gap_starts == 1)[single]
        follows_form_feed[rows] = True
        blank_lines[rows[rows > 0]] = 1
    return LineTable(text, codes, starts, ends, blank_lines, indents, follows_form_feed)


def mark_hard_breaks(lines: LineTable) -> np.ndarray:
    """True for each line that begins a paragraph, heading, list item or verse line, (n,).

    The other lines continue the line before: its line break only wraps a long line.
    """
    count = len(lines)
    if count < 2:
        return np.ones(count, bool)
    is_break = np.zeros(count, bool)
    fits = lines.widths[:-1] + 1 + lines.first_word_lengths[1:]
    wrap_width = np.quantile(lines.widths, WRAP_WIDTH_QUANTILE)
    # A hard break: the word would have fitted on the line before, and may begin a sentence.
    is_break[1:] = (fits <= wrap_width) & ~lines.begins_lowercase[1:]
    is_break |= _mark_unwrapped_paragraphs(lines)[lines.paragraph_ids]
    for index in find_candidates(lines, _ITEM_CHARACTERS, letters=True):
        line = lines.line(index)
        if _ITEM_MARK.match(line):
            is_break[index] = True
            if _HEADING_MARK.match(line):
                is_break[index + 1 : index + 2] = True
    underlines = find_underlines(lines)
    is_break[1:] |= underlines[:-1]
    is_break &= ~underlines  # an underline belongs to the heading above it
    return is_break | (lines.blank_lines > 0) | (np.arange(count) == 0)


def find_underlines(lines: LineTable) -> np.ndarray:
    """True for each line such as `=====`, (n,)."""
    is_underline = np.zeros(len(lines), bool)
    for index in find_candidates(lines, _UNDERLINE_CHARACTERS):
        if lines.first_characters[index] == lines.last_characters[index]:
            is_underline[index] = is_heading_underline(lines.line(index))
    return is_underline


def _mark_unwrapped_paragraphs(lines: LineTable) -> np.ndarray:
    """True for each paragraph whose line breaks are all hard breaks, as in a poem.

    That is so if the first word of the next line would still fit on at least half of the lines; in
    a wrapped paragraph it never fits. Only lines before a lower-case word count, because titles and
    list items also end early in a wrapped paragraph.
    """
    ids = lines.paragraph_ids
    paragraphs = int(ids[-1]) + 1
    first_lines = np.searchsorted(ids, np.arange(paragraphs))
    widest = np.maximum.reduceat(lines.widths, first_lines)
    has_space = lines.widths[:-1] + 1 + lines.first_word_lengths[1:] <= widest[ids[1:]]
    is_counted = lines.begins_lowercase[1:] & (ids[1:] == ids[:-1])
    counted = np.bincount(ids[1:][is_counted], minlength=paragraphs)
    fitting = np.bincount(ids[1:][is_counted & has_space], minlength=paragraphs)
    return (counted > 0) & (2 * fitting >= counted)


def find_candidates(lines: LineTable, characters: str, *, letters: bool = False) -> list[int]:
    """Lines that begin with one of the characters; or, on request, with a letter and `.` or `)`."""
    first = lines.first_characters
    mask = np.isin(first, encode_code_points(characters))
    if letters:
        second = lines.codes[np.minimum(lines.starts + 1, len(lines.codes) - 1)]
        mask |= np.isin(second, (ord("."), ord(")"))) & (lines.widths > 1)
    return np.flatnonzero(mask).tolist()


def is_heading_underline(line: str) -> bool:
    """True for a line such as `=====`, which underlines the heading above it."""
    # The first condition is a fast path: it rejects nearly every line without the regex.
    return line[:3].count(line[0]) == 3 and _UNDERLINE.match(line) is not None


def is_list_item(line: str) -> bool:
    """True if a line begins with the mark of a list item, a heading or a quote."""
    return _ITEM_MARK.match(line) is not None


def is_marked_heading(line: str) -> bool:
    """True for a line such as `# Heading`, with one to six `#`."""
    return _HEADING_MARK.match(line) is not None


def get_indentation(gap: str) -> str:
    """The part of `gap` after its last line end; all of it if there is none.

    `gap` is the white space between two elements. The result is the indentation of the second one
    if that is on a new line.
    """
    # " " is a fast path for two sentences in one line.
    return gap if gap == " " else gap[max(map(gap.rfind, LINE_ENDS)) + 1 :]


def measure_indent(gap: str) -> int:
    """Columns of the indentation at the end of a gap."""
    return len(get_indentation(gap).expandtabs(TAB_COLUMNS))


def count_blank_lines(gap: str) -> int:
    """Number of blank lines in `gap`, the white space between two lines.

    A form feed (page break) counts as at least one blank line.
    """
    if gap in ("\n", "\r\n"):  # fast path for nearly every gap
        return 0
    return max(len(_LINE_END.findall(gap)) - 1, int("\f" in gap))


def encode_code_points(text: str) -> np.ndarray:
    """Code points of a text, (characters,), uint32; lone surrogates are allowed."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)


def check_characters(codes: np.ndarray, predicate: Callable[[str], bool]) -> np.ndarray:
    """Result of a method of `str` for each code point, bool; called once per different one."""
    distinct, indices = np.unique(codes, return_inverse=True)
    return np.array([predicate(chr(code)) for code in distinct], bool)[indices]


@cache
def _space_table() -> np.ndarray:
    """True for white space, by code point; the last entry stands for all greater ones."""
    return np.array([chr(code).isspace() for code in range(0x3001)] + [False])
