"""Line and character as editors count them: from 0, in units of UTF-16 unless something else was agreed on."""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import cached_property
from typing import Literal

from neural.core.diagnostics import Where

Units = Literal["utf-8", "utf-16", "utf-32"]
_END_OF_LINE = re.compile(r"\r\n|\n|\r")


class Positions:
    """The lines of a text. Whatever an editor asks for lies in the text: a place behind its end is its end."""

    def __init__(self, text: str, units: Units = "utf-16") -> None:
        self.text, self.units = text, units

    @cached_property
    def _lines(self) -> list[tuple[int, int]]:
        """Start and end of every line, its end mark left out."""
        marks = list(_END_OF_LINE.finditer(self.text))
        starts = [0, *(mark.end() for mark in marks)]
        return list(zip(starts, [*(mark.start() for mark in marks), len(self.text)], strict=True))

    def place(self, offset: int) -> tuple[int, int]:
        """Line and character of a place in the text."""
        line = bisect_right(self._lines, (offset, len(self.text) + 1)) - 1
        start, end = self._lines[line]
        return line, self._length(self.text[start : min(offset, end)])

    def offset(self, line: int, character: int) -> int:
        """The place in the text; inside a character, its start."""
        if line >= len(self._lines):
            return len(self.text)
        start, end = self._lines[max(0, line)]
        low, high = 0, end - start
        while low < high:   # the most letters that are not longer than that
            middle = (low + high + 1) // 2
            if self._length(self.text[start : start + middle]) <= character:
                low = middle
            else:
                high = middle - 1
        return start + low

    def span(self, where: Where) -> tuple[tuple[int, int], tuple[int, int]]:
        """Where a stretch begins and ends."""
        return self.place(where.start), self.place(where.end)

    def _length(self, text: str) -> int:
        if self.units == "utf-32" or text.isascii():
            return len(text)
        if self.units == "utf-8":
            return len(text.encode("utf-8", "surrogatepass"))
        return len(text) + sum(letter > "\uffff" for letter in text)
