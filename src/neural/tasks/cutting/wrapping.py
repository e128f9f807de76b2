"""Which line breaks an author meant, and which only wrap a paragraph.

A break is meant where a blank line follows, where the next line begins a list item or a heading, and where the next
word would still have fitted into the line and does not begin with a small letter. Where most lines of a paragraph had
room for it all the same, as in verses and in code, all breaks are meant. How wide lines may be is taken from the text
itself, so a paragraph per line and lines wrapped at column 72 are both read as they are meant.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from neural.tasks.cutting.headings import begins_item, is_marked, is_underline

Span = tuple[int, int]
"""Begin and end, in characters."""
LINE_ENDS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
"""What ends a line, as `str.splitlines` has it."""
USUAL = 0.9
"""The share of lines that are no wider than the width lines are wrapped at."""
_LINE_END = re.compile(f"\r\n|[{LINE_ENDS}]")


def blocks(text: str, lines: Sequence[Span]) -> Iterator[Span]:
    """Runs of lines that read on as one: a paragraph, a heading, an item of a list."""
    if not lines:
        return
    width = np.quantile([end - start for start, end in lines], USUAL)
    for paragraph in _paragraphs(text, lines):
        loose = _is_loose(text, paragraph)
        begin, end = paragraph[0]
        for (before, _), (start, stop) in pairwise(paragraph):
            if _is_meant(text[before:end], text[start:stop], width, loose):
                yield begin, end
                begin = start
            end = stop
        yield begin, end


def _paragraphs(text: str, lines: Sequence[Span]) -> Iterator[list[Span]]:
    """Lines without a blank one between them."""
    run = [lines[0]]
    for (_, end), (start, stop) in pairwise(lines):
        if blank_lines(text[end:start]):
            yield run
            run = []
        run.append((start, stop))
    yield run


def _is_loose(text: str, paragraph: Sequence[Span]) -> bool:
    """Whether most lines have room for the first word of the next, where it begins with a small letter.

    Of a wrapped paragraph no line has. Other first words do not count: a title or a list says nothing about the rest.
    """
    widest = max(end - start for start, end in paragraph)
    room = [
        end - start + 1 + len(text[after:stop].split(None, 1)[0]) <= widest
        for (start, end), (after, stop) in pairwise(paragraph)
        if text[after].islower()
    ]
    return bool(room) and 2 * sum(room) >= len(room)


def _is_meant(before: str, line: str, width: float, loose: bool) -> bool:
    """Whether the break between two lines is more than a wrap."""
    if is_underline(line):
        return False
    if loose or begins_item(line) or is_marked(before) or is_underline(before):
        return True
    first = line.split(None, 1)[0]
    return len(before) + 1 + len(first) <= width and not first[0].islower()


def margin(gap: str) -> str:
    """What of a gap stands on the line of the element after it."""
    return gap if gap == " " else gap[max(map(gap.rfind, LINE_ENDS)) + 1 :]


def blank_lines(gap: str) -> int:
    """Empty lines in what stands between two lines; a new page counts as one."""
    if gap in ("\n", "\r\n"):   # nearly always
        return 0
    return max(len(_LINE_END.findall(gap)) - 1, int("\f" in gap))
