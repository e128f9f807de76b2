"""Convert offsets in a text to line and character as editors count them, and back.

Both count from 0. A character is counted in code units of an encoding, by default UTF-16.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import cached_property
from typing import Literal

from neural.core.diagnostics import SourceSpan

PositionEncoding = Literal["utf-8", "utf-16", "utf-32"]
_END_OF_LINE = re.compile(r"\r\n|\n|\r")


class TextPositions:
    """The lines of a text. Positions past the end of a line or the text are clipped to it."""

    def __init__(self, text: str, encoding: PositionEncoding = "utf-16") -> None:
        self.text, self.encoding = text, encoding

    @cached_property
    def _lines(self) -> list[tuple[int, int]]:
        """Start and end offset of every line, without line ending."""
        line_ends = list(_END_OF_LINE.finditer(self.text))
        starts = [0, *(line_end.end() for line_end in line_ends)]
        ends = [*(line_end.start() for line_end in line_ends), len(self.text)]
        return list(zip(starts, ends, strict=True))

    def to_line_character(self, offset: int) -> tuple[int, int]:
        """Line and character of an offset."""
        line = bisect_right(self._lines, (offset, len(self.text) + 1)) - 1
        start, end = self._lines[line]
        return line, self._count_units(self.text[start : min(offset, end)])

    def to_offset(self, line: int, character: int) -> int:
        """The offset of a position; for one inside a character, the offset of that character."""
        if line >= len(self._lines):
            return len(self.text)
        start, end = self._lines[max(0, line)]
        low, high = 0, end - start
        while low < high:  # bisect the largest number of characters within `character` units
            middle = (low + high + 1) // 2
            if self._count_units(self.text[start : start + middle]) <= character:
                low = middle
            else:
                high = middle - 1
        return start + low

    def to_range(self, span: SourceSpan) -> tuple[tuple[int, int], tuple[int, int]]:
        """Start and end position of a span."""
        return self.to_line_character(span.start), self.to_line_character(span.end)

    def _count_units(self, text: str) -> int:
        """Length of a text in code units of the encoding."""
        if self.encoding == "utf-32" or text.isascii():
            return len(text)
        if self.encoding == "utf-8":
            return len(text.encode("utf-8", "surrogatepass"))
        return len(text) + sum(character > "\uffff" for character in text)
