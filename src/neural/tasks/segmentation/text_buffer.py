"""A window of a text that is read from its start to its end."""

from __future__ import annotations

from bisect import bisect_right


class TextBuffer:
    """The newest part of a text: grows at its end, is dropped at its start.

    Positions count characters of the full text. The parts are joined only when a slice needs it, so
    a long slice costs time once.
    """

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._starts: list[int] = []
        self.end = 0

    @property
    def start(self) -> int:
        """Position of the first character that is still there."""
        return self._starts[0] if self._starts else self.end

    def append(self, text: str) -> None:
        """Add the next characters of the text."""
        if text:
            self._parts.append(text)
            self._starts.append(self.end)
            self.end += len(text)

    def slice(self, start: int, end: int) -> str:
        """The characters from `start` to `end`. ValueError if some of them were dropped."""
        if start >= end:
            return ""
        if start < self.start:
            raise ValueError(f"the text before {self.start:,} was dropped, {start:,} was asked for")
        first = bisect_right(self._starts, start) - 1
        last = bisect_right(self._starts, end - 1)
        if last - first == 1:
            offset = self._starts[first]
            return self._parts[first][start - offset : end - offset]
        parts = self._parts[first:last]
        parts[-1] = parts[-1][: end - self._starts[last - 1]]
        parts[0] = parts[0][start - self._starts[first] :]
        return "".join(parts)

    def drop_before(self, position: int) -> None:
        """Forget whole parts that end at or before a position."""
        count = bisect_right(self._starts, position) - 1
        if count > 0:
            del self._parts[:count], self._starts[:count]
