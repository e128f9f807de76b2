"""Decode boundary probabilities into segments with limits: numbers of tokens and of elements.

`BoundedDecoder` gets the elements of a text block by block and returns segments as soon as they
cannot change any more. Of all segmentations whose segments have at most `max_tokens` tokens and
`max_elements` elements, the best segmentation is found in this order:

1. fewest boundaries at places where no segment should begin: inside an element, or where
   `can_begin` is False (directly after a heading)
2. fewest segments with less than `min_tokens` tokens or `min_elements` elements
3. largest sum of gains of the boundaries (see decoding.py)

An element with more than `max_tokens` tokens is divided into lines, a line that is still too long
after full stops, then into clauses, words, characters. The limit is checked on the exact text of every
segment, so it holds for any tokenizer.

The order above is exact if the tokens of a text never get fewer when the text gets longer at either
end. That holds for words and characters; other tokenizers may merge tokens across the end of a text
and break it by a token or two, which can cost optimality but never the limit. Counting all possible
segments of a long text with such a tokenizer would tokenize the text about a hundred times. If the
counts of its elements nearly add up to those of segments, they serve as estimates, and only
segments that are on the best path are counted (`_SpanCounter`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from neural.core.errors import TaskError
from neural.tasks.segmentation.boundary_encoding import Boundaries
from neural.tasks.segmentation.decoding import compute_gains
from neural.tasks.segmentation.line_wrapping import LINE_ENDS
from neural.tasks.segmentation.segment_search import SegmentSearch
from neural.tasks.segmentation.text_buffer import TextBuffer
from neural.tasks.segmentation.token_counting import TokenCounter

MAX_PENDING_UNITS = 1 << 14
"""With more units whose segments may still change, the best segmentation so far becomes final.

In a text that repeats itself, several segmentations may stay equally good for ever.
"""
MAX_EXACT_UNITS = 128
"""With more units, counts of a tokenizer that do not add up are estimated where possible."""
SAMPLED_SPANS = 16
"""Number of spans that are counted to find out how well estimates hold."""
MAX_RELATIVE_ERROR = 0.03
"""Largest error of an estimate in the sample, relative to the limit."""
MAX_ERROR_TOKENS = 4
"""The same in tokens; the larger of the two counts."""
_DIVISION_PATTERNS = (
    re.compile(f"\r\n|[{LINE_ENDS}]"),
    re.compile(r"(?<=\w\w)[.!?…]+[\"')\]”’»]*\s+|[。！？]"),
    re.compile(r"(?<=\S)[,;:.!?…–—]+\s+|\s[–—]\s+|[，；：、。！？]"),
    re.compile(r"\s+"),
    re.compile(r"(?s:.)"),
)
"""Where an element may be divided: after lines, full stops, clauses, words, characters."""
_DIVISION_LOSS = 100.0
"""Subtracted from the gain of a boundary, once for lines, twice for full stops and so on.

More than the range of log-odds: between equal numbers of divisions, those after lines are best.
"""


@dataclass(frozen=True, kw_only=True)
class SegmentLimits:
    """Limits of the segments of a text."""

    max_tokens: int | None = None
    min_tokens: int = 0
    min_elements: int = 1
    max_elements: int | None = None
    threshold: float = 0.5


@dataclass(frozen=True, eq=False, kw_only=True)
class ElementBlock:
    """Consecutive elements of a text with their boundary probabilities."""

    starts: np.ndarray
    """Position in the text where a segment begins that begins with the element, (n,)."""
    end: int
    """Position of the start of the next block."""
    probabilities: np.ndarray
    """P(boundary), (n,)."""
    can_begin: np.ndarray
    """Whether a segment may begin at the element, (n,)."""
    boundaries: Boundaries | None = None
    """Boundaries of a decoder without limits, (n,); not used here."""


@dataclass(frozen=True, slots=True)
class DecodedSegment:
    """A segment as positions in the text and indices of elements."""

    start: int
    end: int
    first: int
    """Index of the element that the segment begins with, or begins in."""
    last: int
    """Index after the last element that has a part in the segment."""
    is_inside_element: bool
    """True if it begins inside an element."""
    tokens: int | None
    """None if tokens are not limited."""


class BoundedDecoder:
    """Decodes blocks of elements into segments within limits."""

    def __init__(
        self, limits: SegmentLimits, text: TextBuffer, counter: TokenCounter | None = None
    ) -> None:
        """`text` must have the text of every block before the block is pushed.

        Without a counter there are no limits on tokens.
        """
        self.limits = limits
        self._search = SegmentSearch()
        self._units = _Units()
        self._element_count = 0
        self._spans: _SpanCounter | None = None
        if counter is not None:
            self._spans = _SpanCounter(counter, text, self._units, limits)

    def push(self, block: ElementBlock) -> list[DecodedSegment]:
        """Segments that are final after these elements."""
        units, limits = self._units, self.limits
        pushed = units.count
        gains = compute_gains(block.probabilities, limits.threshold)
        if self._spans is None:
            levels = np.zeros(len(gains), int)
            elements = np.arange(len(gains))
            starts = block.starts
        else:
            starts, elements, levels = self._spans.divide(block)
        units.append(starts, block.end, elements + self._element_count)
        self._element_count += len(gains)
        ends = np.arange(pushed, units.count)
        lows, highs = self._bound_elements(ends)
        if self._spans is not None:
            token_lows, token_highs = self._spans.bound(pushed)
            lows, highs = np.maximum(lows, token_lows), np.minimum(highs, token_highs)
        is_divided = levels > 0
        self._search.push(
            np.where(is_divided, -_DIVISION_LOSS * levels, gains[elements]),
            is_divided | ~block.can_begin[elements],
            lows,
            highs,
        )
        return self._take_segments(is_final=False)

    def finish(self) -> list[DecodedSegment]:
        """The remaining segments."""
        return self._take_segments(is_final=True)

    def _bound_elements(self, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """First possible start, and last start of a segment that is not short, by elements."""
        units, limits = self._units, self.limits
        last_elements = units.elements[ends - units.base]
        lows = np.zeros(len(ends), int)
        if limits.max_elements is not None:
            first_elements = last_elements - limits.max_elements + 1
            lows = np.searchsorted(units.elements, first_elements) + units.base
        if limits.min_elements == 1:
            return lows, ends
        first_elements = last_elements - limits.min_elements + 1
        return lows, np.searchsorted(units.elements, first_elements, "right") - 1 + units.base

    def _take_segments(self, *, is_final: bool) -> list[DecodedSegment]:
        """Commit the segments that cannot change any more."""
        search, units = self._search, self._units
        path, is_stable = self._find_verified_path(is_final=is_final), True
        last_end = path[-1][1] if path else search.base
        if not is_final and search.count - last_end > MAX_PENDING_UNITS:
            kept_end = search.count - MAX_PENDING_UNITS // 2
            best_path = [
                span for span in self._find_verified_path(is_final=True) if span[1] <= kept_end
            ]
            if len(best_path) > len(path):
                path, is_stable = best_path, False
        if not path:
            return []
        segments = [
            DecodedSegment(
                start=int(units.starts[first - units.base]),
                end=units.end_of(last - 1),
                first=int(units.elements[first - units.base]),
                last=int(units.elements[last - 1 - units.base]) + 1,
                is_inside_element=units.is_inside_element(first),
                tokens=None if self._spans is None else self._spans.count(first, last),
            )
            for first, last in path
        ]
        end = path[-1][1]
        search.commit(end, is_stable=is_stable)
        if self._spans is not None:
            self._spans.forget_before(end)
        units.drop_before(end)
        return segments

    def _find_verified_path(self, *, is_final: bool) -> list[tuple[int, int]]:
        """Segments that are within the limit of tokens: others are excluded from the search."""
        while True:
            path = self._search.find_path(is_final=is_final)
            rejected = self._spans.find_oversized(path) if self._spans is not None else []
            if not rejected:
                return path
            self._search.exclude(rejected)


class _Units:
    """Smallest pieces of a text that segments consist of: elements, or divisions of elements.

    Unit i has the index i in the full text; the arrays begin at the unit `base`.
    """

    def __init__(self) -> None:
        self.base = 0
        self.starts = np.zeros(0, int)
        """Positions in the text."""
        self.elements = np.zeros(0, int)
        """Index of the element of each unit."""
        self.end = 0
        """Position of the end of the last unit."""
        self._last_dropped_element = -1

    @property
    def count(self) -> int:
        """Number of all units so far."""
        return self.base + len(self.starts)

    def append(self, starts: np.ndarray, end: int, elements: np.ndarray) -> None:
        """Add units; the last one ends at the position `end`."""
        self.starts = np.concatenate([self.starts, starts])
        self.elements = np.concatenate([self.elements, elements])
        self.end = end

    def drop_before(self, unit: int) -> None:
        """Forget the units before one."""
        dropped = unit - self.base
        if dropped:
            self._last_dropped_element = int(self.elements[dropped - 1])
        self.starts, self.elements = self.starts[dropped:], self.elements[dropped:]
        self.base = unit

    def end_of(self, unit: int) -> int:
        """Position of the end of a unit."""
        index = unit - self.base + 1
        return int(self.starts[index]) if index < len(self.starts) else self.end

    def is_inside_element(self, unit: int) -> bool:
        """True if a unit is not the first one of its element."""
        index = unit - self.base
        previous = self.elements[index - 1] if index else self._last_dropped_element
        return int(previous) == int(self.elements[index])


class _SpanCounter:
    """Tokens of spans of units.

    Running counts give an upper and a lower limit for the start of a segment with a given end. For
    words and characters they are exact. For other tokenizers they are sums of the counts of units,
    corrected by the median change per joint of a sample of spans, if the errors in the sample are
    small; then a tolerance is added to the limit, and segments that are chosen are counted. If the
    errors are large, or there are few units, all spans near the limits are counted.
    """

    def __init__(
        self, counter: TokenCounter, text: TextBuffer, units: _Units, limits: SegmentLimits
    ) -> None:
        self._counter, self._text, self._units = counter, text, units
        self._max_tokens = math.inf if limits.max_tokens is None else limits.max_tokens
        self._min_tokens = limits.min_tokens
        self._counts: dict[tuple[int, int], int] = {}
        """True counts by unit indices, of all spans that were counted."""
        # Running counts of the units from `units.base` on: a span (first, last) has
        # running_ends[last − 1] − running_starts[first] tokens.
        self._running_starts = np.zeros(0)
        self._running_ends = np.zeros(0)
        self._is_measured = counter.measure("", np.zeros(1, int)) is not None
        self._correction = 0.0
        self._tolerance: float | None = 0.0 if self._is_measured else None
        """Added to the limit; None if running counts are of no use."""
        self._is_calibrated = self._is_measured
        self._new_counts = np.zeros(0, int)
        self._low = self._high = 0

    def divide(self, block: ElementBlock) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Units of a block: start, element (from 0 in the block) and level of division of each.

        The level is 0 at the start of an element; see `_DIVISION_PATTERNS`.
        """
        edges = [*block.starts.tolist(), block.end]
        block_text = self._text.slice(edges[0], block.end)
        offset = edges[0]
        if self._is_measured:
            ends, starts = self._measure(np.array(edges))
            counts = (ends[1:] - starts[:-1]).astype(int)
        else:
            texts = [block_text[start - offset : end - offset] for start, end in pairwise(edges)]
            counts = np.array(self._counter.count_many(texts), int)
        oversized = np.flatnonzero(counts > self._max_tokens)
        if not len(oversized):
            self._new_counts = counts
            return block.starts, np.arange(len(counts)), np.zeros(len(counts), int)
        unit_starts: list[int] = []
        elements: list[int] = []
        levels: list[int] = []
        new_counts: list[int] = []
        oversized_set = set(oversized.tolist())
        for element in range(len(counts)):
            start = edges[element]
            if element in oversized_set:
                pieces = list(
                    self._divide_text(block_text[start - offset : edges[element + 1] - offset], 0)
                )
            else:
                pieces = [(edges[element + 1] - start, int(counts[element]), 0)]
            for number, (length, count, level) in enumerate(pieces):
                unit_starts.append(start)
                elements.append(element)
                levels.append(level if number else 0)
                new_counts.append(count)
                start += length
        self._new_counts = np.array(new_counts)
        return np.array(unit_starts), np.array(elements), np.array(levels)

    def _divide_text(self, text: str, level: int) -> Iterator[tuple[int, int, int]]:
        """Length, tokens and level of the pieces of a text that is too long for a segment."""
        if level == len(_DIVISION_PATTERNS):
            raise TaskError(
                f"max_tokens {self._max_tokens} is too small: the character {text!r} alone has "
                f"more tokens ({self._counter.name}); raise it"
            )
        ends = [match.end() for match in _DIVISION_PATTERNS[level].finditer(text)]
        if not ends or ends[-1] < len(text):
            ends.append(len(text))
        if len(ends) == 1 and level < len(_DIVISION_PATTERNS) - 1:
            yield from self._divide_text(text, level + 1)
            return
        pieces = [text[start:end] for start, end in zip([0, *ends], ends, strict=False)]
        for piece, count in zip(pieces, self._counter.count_many(pieces), strict=True):
            if count <= self._max_tokens:
                yield len(piece), count, level + 1
                continue
            for number, inner in enumerate(self._divide_text(piece, level + 1)):
                # The first piece begins where the piece around it begins.
                yield inner if number else (inner[0], inner[1], level + 1)

    def bound(self, first_new: int) -> tuple[np.ndarray, np.ndarray]:
        """First possible start of the segments that end with each of the new units, (n,).

        Also the last start of those that have `min_tokens`. The units from `first_new` on are new.
        """
        units = self._units
        if not self._is_measured:
            self._counts |= {
                (first_new + index, first_new + index + 1): count
                for index, count in enumerate(self._new_counts.tolist())
            }
        if not self._is_calibrated:
            self._calibrate(first_new)
        if self._tolerance is None:
            return self._bound_by_counting(first_new)
        self._extend_running_counts(first_new)
        new_ends = self._running_ends[first_new - units.base :]
        limit = self._max_tokens + self._tolerance
        lows = np.searchsorted(self._running_starts, new_ends - limit) + units.base
        # A unit that is a segment of its own is within the limit, whatever the estimate is.
        lows = np.minimum(np.maximum.accumulate(lows), np.arange(first_new, units.count))
        if not self._min_tokens:
            return lows, np.arange(first_new, units.count)
        highs = np.searchsorted(self._running_starts, new_ends - self._min_tokens, "right") - 1
        return lows, highs + units.base

    def find_oversized(self, path: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """The segments of a path that exceed the limit."""
        return [span for span in path if self._is_oversized(*span)]

    def _is_oversized(self, first: int, last: int) -> bool:
        return not math.isinf(self._max_tokens) and self.count(first, last) > self._max_tokens

    def count(self, first: int, last: int) -> int:
        """Tokens of the units from `first` to `last`, which is excluded."""
        base = self._units.base
        if self._is_measured:
            return int(self._running_ends[last - 1 - base] - self._running_starts[first - base])
        count = self._counts.get((first, last))
        if count is None:
            text = self._text.slice(
                int(self._units.starts[first - base]), self._units.end_of(last - 1)
            )
            count = self._counts[first, last] = self._counter.count(text)
        return count

    def forget_before(self, unit: int) -> None:
        """Drop all counts of spans that begin before a unit."""
        self._counts = {span: count for span, count in self._counts.items() if span[0] >= unit}
        dropped = unit - self._units.base
        self._running_starts = self._running_starts[dropped:]
        self._running_ends = self._running_ends[dropped:]
        self._low, self._high = max(self._low, unit), max(self._high, unit)

    def _measure(self, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Exact running counts at positions of the text, 0 at the end of what is before them."""
        # The character before the first position decides if it is inside a word.
        start = max(self._text.start, int(positions[0]) - 1)
        measured = self._counter.measure(
            self._text.slice(start, int(positions[-1])), positions - start
        )
        assert measured is not None
        ends, starts = measured
        return ends - ends[0], starts - ends[0]

    def _extend_running_counts(self, first_new: int) -> None:
        units = self._units
        total = self._running_ends[-1] if len(self._running_ends) else 0.0
        if self._is_measured:
            ends, starts = self._measure(
                np.append(units.starts[first_new - units.base :], units.end)
            )
            new_starts, new_ends = starts[:-1], ends[1:]
        else:
            # The correction belongs to joints, of which there is one less than units.
            sums = np.cumsum(np.maximum(self._new_counts - self._correction, 0.0))
            new_starts = np.append(0.0, sums[:-1]) - self._correction
            new_ends = sums
        self._running_starts = np.concatenate([self._running_starts, total + new_starts])
        self._running_ends = np.concatenate([self._running_ends, total + new_ends])

    def _calibrate(self, first_new: int) -> None:
        """Decide whether sums of counts are good estimates, from a sample of spans."""
        self._is_calibrated = True
        count = len(self._new_counts)
        if count <= MAX_EXACT_UNITS:
            return
        sums = np.append(0, np.cumsum(self._new_counts))
        firsts = np.linspace(0, count - 2, SAMPLED_SPANS).astype(int)
        limit = self._min_tokens if math.isinf(self._max_tokens) else self._max_tokens
        lasts = np.searchsorted(sums, sums[firsts] + limit, "right") - 1
        spans = [
            (first, last)
            for first, last in zip(firsts.tolist(), lasts.tolist(), strict=True)
            if last - first > 1
        ]
        if not spans:
            self._tolerance = float(MAX_ERROR_TOKENS)
            return
        estimates = np.array([sums[last] - sums[first] for first, last in spans])
        true_counts = np.array(
            [self.count(first_new + first, first_new + last) for first, last in spans]
        )
        joints = np.array([last - first - 1 for first, last in spans])
        correction = float(np.median((estimates - true_counts) / joints))
        error = float(np.abs(estimates - correction * joints - true_counts).max())
        if error <= max(MAX_ERROR_TOKENS, MAX_RELATIVE_ERROR * limit):
            self._correction = correction
            self._tolerance = 2 * error + MAX_ERROR_TOKENS

    def _bound_by_counting(self, first_new: int) -> tuple[np.ndarray, np.ndarray]:
        """The same as `bound`, by counting spans: at most two for each end and each limit."""
        lows, highs = [], []
        for last in range(first_new, self._units.count):
            while self._low < last and self._is_oversized(self._low, last + 1):
                self._low += 1
            lows.append(self._low)
            if self._min_tokens:
                # `_high` is the first start whose segment would be too short.
                while self._high <= last and self.count(self._high, last + 1) >= self._min_tokens:
                    self._high += 1
                highs.append(self._high - 1)
            else:
                highs.append(last)
        return np.array(lows), np.array(highs)
