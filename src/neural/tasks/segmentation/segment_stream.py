"""Segments of a text that arrives in chunks: each is returned as soon as it cannot change any more.

    stream = SegmentStream(chunks, "notes.txt", pipeline, SegmentOptions(max_tokens=512))
    for segment in stream:
        print(segment.start, segment.end, segment.title)

A text in one chunk gives the same segments as the same text in many. Memory is bounded by the
longest segment, unless the caller collects the segments.

Without a token budget, the text is decoded by the pipeline. A text of more than one window
(document_stream.py) is decoded while it is read: by the same rules, except that with limits on
elements that cannot all be kept, as few segments as possible are below the minimum. The decoder for
the least expected Pk then works window by window.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, get_args

import numpy as np

from neural.core.errors import TaskError
from neural.tasks.segmentation.boundary_encoding import Boundaries
from neural.tasks.segmentation.decoding import compute_gains
from neural.tasks.segmentation.document_stream import (
    ParsingOptions,
    ScoredElements,
    read_text_blocks,
    replace_surrogates,
    score_elements,
)
from neural.tasks.segmentation.html_blocks import parse_html
from neural.tasks.segmentation.overlap import find_overlap
from neural.tasks.segmentation.pipeline import SegmentationPipeline
from neural.tasks.segmentation.structure import Markup
from neural.tasks.segmentation.text_buffer import TextBuffer
from neural.tasks.segmentation.text_splitting import ElementUnit, make_title
from neural.tasks.segmentation.token_budget import (
    BoundedDecoder,
    DecodedSegment,
    ElementBlock,
    SegmentLimits,
)
from neural.tasks.segmentation.token_counting import TokenCounter, make_token_counter

UNITS: tuple[ElementUnit, ...] = get_args(ElementUnit)
MARKUPS: tuple[Markup, ...] = get_args(Markup)
DEFAULT_TOKENIZER = "words"
MAX_CHARACTERS_PER_TOKEN = 32
"""For the overlap, this number of characters per token is kept of the text before a segment."""
MIN_KEPT_CHARACTERS = 4096
"""The smallest number of characters that are kept for the overlap."""
LAYOUT_THRESHOLD = 0.5
"""A segment begins from this probability on if the layout alone decides."""


@dataclass(frozen=True, kw_only=True)
class SegmentOptions:
    """How texts are segmented. None is the value of the pipeline, or no limit."""

    max_tokens: int | None = None
    """No segment has more tokens, its overlap included."""
    min_tokens: int | None = None
    """As few segments as possible have less tokens."""
    overlap: float = 0
    """Tokens before a segment that its text repeats; below 1, a share of `max_tokens`."""
    tokenizer: Any = None
    """What counts tokens; see token_counting.py. By default, words are counted."""
    min_elements: int | None = None
    max_elements: int | None = None
    threshold: float | None = None
    unit: ElementUnit | None = None
    markup: Markup = "auto"
    ignore_layout: bool = False
    """Hides headings, blank lines and other layout from the model."""

    def __post_init__(self) -> None:
        for name in ("max_tokens", "min_tokens", "min_elements", "max_elements"):
            value = getattr(self, name)
            if value is not None and (
                isinstance(value, bool) or not isinstance(value, int | np.integer)
            ):
                raise TaskError(f"{name} must be a whole number, not {value!r}")
            if value is not None and value < 1:
                raise TaskError(f"{name} must be at least 1, not {value}")
        for smaller, larger in (("min_elements", "max_elements"), ("min_tokens", "max_tokens")):
            low, high = getattr(self, smaller), getattr(self, larger)
            if low is not None and high is not None and low > high:
                raise TaskError(f"{smaller} {low} is larger than {larger} {high}")
        if self.threshold is not None and not 0 < self.threshold < 1:
            raise TaskError(f"threshold must be between 0 and 1, not {self.threshold}")
        if self.unit not in (None, *UNITS):
            raise TaskError(f"unit {self.unit!r} is not one of {', '.join(UNITS)}")
        if self.markup not in MARKUPS:
            raise TaskError(f"markup {self.markup!r} is not one of {', '.join(MARKUPS)}")
        self._check_overlap()

    def _check_overlap(self) -> None:
        if not math.isfinite(self.overlap) or self.overlap < 0:
            raise TaskError(f"overlap must be a number of tokens, 0 or more, not {self.overlap}")
        if 0 < self.overlap < 1 and self.max_tokens is None:
            raise TaskError(f"overlap {self.overlap} is a share of max_tokens, which is not set")
        if self.core_tokens is None:
            return
        if self.core_tokens < 1:
            raise TaskError(
                f"overlap {self.overlap:g} leaves no tokens of max_tokens {self.max_tokens}; "
                "make it smaller"
            )
        if self.min_tokens is not None and self.min_tokens > self.core_tokens:
            raise TaskError(
                f"min_tokens {self.min_tokens} is larger than max_tokens without the overlap, "
                f"{self.core_tokens}"
            )

    @property
    def overlap_tokens(self) -> int:
        """The overlap as a number of tokens."""
        if 0 < self.overlap < 1:
            return int(self.overlap * (self.max_tokens or 0))
        return int(self.overlap)

    @property
    def core_tokens(self) -> int | None:
        """Largest number of tokens of a segment without its overlap."""
        return None if self.max_tokens is None else self.max_tokens - self.overlap_tokens

    @cached_property
    def counter(self) -> TokenCounter | None:
        """Counts the tokens of segments; None if nobody has asked for tokens."""
        is_counted = self.max_tokens is not None or self.min_tokens is not None or self.overlap > 0
        if self.tokenizer is None and not is_counted:
            return None
        return make_token_counter(DEFAULT_TOKENIZER if self.tokenizer is None else self.tokenizer)

    def replace(self, **changes: Any) -> SegmentOptions:
        """The same options with some changes."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        unknown = sorted(set(changes) - set(values))
        if unknown:
            raise TypeError(f"there is no option {unknown[0]!r}")
        return SegmentOptions(**(values | changes))


@dataclass(frozen=True, slots=True, kw_only=True)
class TextSegment:
    """A segment of a text."""

    start: int
    """Index of its first character."""
    end: int
    """Index after its last character."""
    first: int
    """Index of its first element."""
    last: int
    """Index after its last element."""
    probability: float | None
    """P(boundary) at its start; None for the first segment, and where an element was divided."""
    max_inner_probability: float
    """Largest P(boundary) inside the segment; 0 for one element."""
    title: str
    """Its heading if it begins with one, else the header of the table that it begins in, else its first
    element; shortened."""
    text: str
    """The text from `overlap_start` to `end`."""
    overlap_start: int
    """Index of the first character of `text`; `start` without an overlap."""
    tokens: int | None = None
    """Tokens of `text`; None if tokens are not counted."""
    plain_text: str | None = None
    """What a reader sees of `text`: without tags, scripts and styles; None unless it is HTML."""
    table_header: str | None = None
    """First row of the table inside which the segment begins; not part of `text`, not counted."""


class SegmentStream:
    """Segments of one text. An iterator; `on_block` gets the elements with their probabilities."""

    def __init__(
        self,
        chunks: Iterable[str],
        name: str,
        pipeline: SegmentationPipeline,
        options: SegmentOptions,
        *,
        suffix: str | None = None,
        on_block: Callable[[ScoredElements], None] = lambda block: None,
    ) -> None:
        """`name` is used in messages; `suffix` is that of the file, which may tell its markup."""
        self.options, self.pipeline = options, pipeline
        self.unit: ElementUnit = options.unit or pipeline.unit
        self.threshold = options.threshold or pipeline.threshold
        # The default minimum gives way to a smaller maximum.
        self.min_elements = options.min_elements or min(
            pipeline.min_elements, options.max_elements or pipeline.min_elements
        )
        self._counter = options.counter
        self._name, self._on_block = name, on_block
        self._markup: Markup = options.markup
        self._parsed_span: tuple[int, int] | None = None
        self._parsed_blocks: list[tuple[str, np.ndarray]] = []
        self.notes: list[str] = []
        """Warnings about the text, a sentence each; complete after the iteration."""
        self._buffer = TextBuffer()
        self._elements = _PendingElements()
        tables = read_text_blocks(
            map(replace_surrogates, chunks),
            name,
            ParsingOptions(unit=self.unit, markup=options.markup, suffix=suffix),
        )
        self._blocks = score_elements(
            tables,
            pipeline,
            name,
            ignore_layout=options.ignore_layout,
            decode=self._decode_window,
        )
        self._segments = self._iterate()

    def __iter__(self) -> Iterator[TextSegment]:
        return self._segments

    def __next__(self) -> TextSegment:
        return next(self._segments)

    @property
    def _is_decoded_by_pipeline(self) -> bool:
        return self.options.max_tokens is None and self.options.min_tokens is None

    def _decode_window(
        self,
        probabilities: np.ndarray,
        can_begin: np.ndarray,
        is_whole_text: bool,
        is_layout_alone: bool,
    ) -> Boundaries | None:
        """Boundaries by the pipeline; None if they are found across windows."""
        is_within_window = is_whole_text or self.uses_expected_pk
        if not (self._is_decoded_by_pipeline and is_within_window):
            return None
        options = self.options
        if is_layout_alone and self.uses_expected_pk:
            return (probabilities > LAYOUT_THRESHOLD) & can_begin  # Pk leaves short parts out
        return self.pipeline.decode(
            probabilities,
            options.min_elements,
            options.max_elements,
            options.threshold,
            can_begin=can_begin,
        )

    def _iterate(self) -> Iterator[TextSegment]:
        decoder: _BoundaryDecoder | BoundedDecoder | None = None
        for block in self._blocks:
            if decoder is None:
                decoder = self._make_decoder(block)
            self._buffer.append(block.table.text)
            self._elements.append(block)
            self._markup = block.table.markup
            if block.note is not None and not self.notes:
                self.notes.append(f"{self._name}: {block.note}")
            self._on_block(block)
            table = block.table
            element_block = ElementBlock(
                starts=table.starts,
                end=table.end,
                probabilities=block.probabilities,
                can_begin=table.can_begin,
                boundaries=block.boundaries,
            )
            for segment in decoder.push(element_block):
                yield self._make_segment(segment)
        assert decoder is not None
        for segment in decoder.finish():
            yield self._make_segment(segment)

    def _make_decoder(self, first_block: ScoredElements) -> _BoundaryDecoder | BoundedDecoder:
        options = self.options
        if first_block.boundaries is not None:
            return _BoundaryDecoder(lambda block: np.asarray(block.boundaries))
        if self._is_decoded_by_pipeline and self.min_elements == 1 and options.max_elements is None:
            # Without limits, every boundary is decided alone.
            return _BoundaryDecoder(
                lambda block: (
                    (compute_gains(block.probabilities, self.threshold) > 0) & block.can_begin
                )
            )
        limits = SegmentLimits(
            max_tokens=options.core_tokens,
            min_tokens=options.min_tokens or 0,
            min_elements=self.min_elements,
            max_elements=options.max_elements,
            threshold=self.threshold,
        )
        is_counted = not self._is_decoded_by_pipeline
        return BoundedDecoder(limits, self._buffer, self._counter if is_counted else None)

    @property
    def decision_threshold(self) -> float | None:
        """A segment begins from this probability on; None if the least expected Pk decides."""
        return None if self.uses_expected_pk else self.threshold

    @property
    def uses_expected_pk(self) -> bool:
        """True if windows are decoded for the least expected Pk, without limits and threshold."""
        options = self.options
        limits = (options.min_elements, options.max_elements, options.threshold)
        return (
            self.pipeline.decoder == "expected_pk"
            and self._is_decoded_by_pipeline
            and all(limit is None for limit in limits)
        )

    def _make_segment(self, decoded: DecodedSegment) -> TextSegment:
        elements = self._elements
        overlap_start, tokens = decoded.start, decoded.tokens
        if self.options.overlap_tokens and self._counter is not None:
            overlap = find_overlap(
                self._buffer,
                elements.starts,
                decoded.start,
                decoded.end,
                self._counter,
                overlap=self.options.overlap_tokens,
                max_tokens=self.options.max_tokens,
            )
            if overlap is not None:
                overlap_start, tokens = overlap
        text = self._buffer.slice(overlap_start, decoded.end)
        if self._counter is not None and tokens is None:
            tokens = self._counter.count(text)
        table_header = self._find_table_header(decoded)
        segment = TextSegment(
            start=decoded.start,
            end=decoded.end,
            first=decoded.first,
            last=decoded.last,
            probability=None
            if decoded.is_inside_element or decoded.start == 0
            else elements.probability(decoded.first),
            max_inner_probability=elements.max_probability(decoded.first + 1, decoded.last),
            title=self._make_title(decoded, table_header),
            text=text,
            overlap_start=overlap_start,
            tokens=tokens,
            plain_text=self._make_plain_text(overlap_start, decoded.end),
            table_header=table_header,
        )
        kept_characters = 0
        if self.options.overlap_tokens:
            kept_characters = max(
                MIN_KEPT_CHARACTERS, MAX_CHARACTERS_PER_TOKEN * self.options.overlap_tokens
            )
        # The last element may have a part in the next segment.
        elements.drop_before(decoded.last - 1, decoded.end - kept_characters)
        self._buffer.drop_before(min(decoded.end - 1, elements.starts[0]))
        return segment

    def _make_plain_text(self, start: int, end: int) -> str | None:
        """Visible text of a part of HTML, a block per line."""
        if self._markup != "html":
            return None
        # A part may begin or end inside a script or a tag: whole elements are parsed.
        starts = self._elements.starts
        first = starts[max(0, bisect_right(starts, start) - 1)]
        last = bisect_left(starts, end)
        element_end = starts[last] if last < len(starts) else self._buffer.end
        lines = []
        for content, positions in self._parse_html_blocks(first, element_end):
            part = slice(*np.searchsorted(positions, [start, end]))
            lines.append(" ".join(content[part].split()))
        return "\n".join(filter(None, lines))

    def _parse_html_blocks(self, start: int, end: int) -> list[tuple[str, np.ndarray]]:
        """Visible text of each block, and the position in the full text of its characters.

        The result is kept for the next part of a long element.
        """
        if self._parsed_span != (start, end):
            parsed = parse_html(self._buffer.slice(start, end))
            self._parsed_span = (start, end)
            self._parsed_blocks = [
                (parsed.clean_text[low:high], start + parsed.map_to_source(np.arange(low, high)))
                for low, high in zip(
                    parsed.blocks.content_start.tolist(),
                    parsed.blocks.content_end.tolist(),
                    strict=True,
                )
            ]
        return self._parsed_blocks

    def _find_table_header(self, decoded: DecodedSegment) -> str | None:
        """First line of a table of Markdown or plain text that is divided before the segment."""
        if not decoded.is_inside_element or not self._elements.is_table(decoded.first):
            return None
        if self._markup == "html":
            return None
        # The buffer has the element from its start on.
        starts = self._elements.starts
        start = starts[bisect_left(starts, decoded.start) - 1]
        return self._buffer.slice(start, decoded.start).lstrip().split("\n", 1)[0].strip()

    def _make_title(self, decoded: DecodedSegment, table_header: str | None) -> str:
        if table_header:
            return make_title([table_header])
        if decoded.is_inside_element:
            lines = self._buffer.slice(decoded.start, decoded.end).split("\n")
            return make_title([line for line in lines if line.strip()] or [""])
        return make_title(self._elements.texts(decoded.first, decoded.last))


class _PendingElements:
    """Elements that segments to come may need."""

    def __init__(self) -> None:
        self._base = 0
        self._texts: list[str] = []
        self._probabilities: list[float] = []
        self._is_heading: list[bool] = []
        self._is_table: list[bool] = []
        self.starts: list[int] = []
        """Positions of elements, from that of the first element that is kept for the overlap."""
        self._starts_base = 0

    def append(self, block: ScoredElements) -> None:
        table = block.table
        self._texts += table.elements
        self._probabilities += block.probabilities.tolist()
        self._is_heading += (
            [False] * len(table)
            if table.layout is None
            else (table.layout.heading_level > 0).tolist()
        )
        self._is_table += (
            [False] * len(table) if table.layout is None else table.layout.is_table.tolist()
        )
        self.starts += table.starts.tolist()

    def probability(self, element: int) -> float:
        return self._probabilities[element - self._base]

    def is_table(self, element: int) -> bool:
        return self._is_table[element - self._base]

    def max_probability(self, first: int, last: int) -> float:
        """Largest probability of a range of elements, 0 for none."""
        return max(self._probabilities[first - self._base : last - self._base], default=0.0)

    def texts(self, first: int, last: int) -> list[str]:
        """Texts of elements; only the heading if the first one is a heading."""
        first, last = first - self._base, last - self._base
        return (
            self._texts[first : first + 1] if self._is_heading[first] else self._texts[first:last]
        )

    def drop_before(self, element: int, position: int) -> None:
        """Forget elements, but keep the positions of those that begin at `position` or later."""
        dropped = max(0, element - self._base)
        for values in (self._texts, self._probabilities, self._is_heading, self._is_table):
            del values[:dropped]
        self._base += dropped
        # At least one position before the next segment is kept.
        count = 0
        last = element - self._starts_base
        while count < last and self.starts[count] < position:
            count += 1
        del self.starts[:count]
        self._starts_base += count


class _BoundaryDecoder:
    """Decoder for boundaries that depend on nothing outside their block."""

    def __init__(self, find_boundaries: Callable[[ElementBlock], np.ndarray]) -> None:
        self._find_boundaries = find_boundaries
        self._count = 0
        self._first, self._start, self._end = 0, 0, 0

    def push(self, block: ElementBlock) -> list[DecodedSegment]:
        segments = [
            self._end_segment(index + self._count, int(block.starts[index]))
            for index in np.flatnonzero(self._find_boundaries(block)).tolist()
            if index + self._count > 0
        ]
        self._count += len(block.starts)
        self._end = block.end
        return segments

    def finish(self) -> list[DecodedSegment]:
        return [self._end_segment(self._count, self._end)]

    def _end_segment(self, last: int, end: int) -> DecodedSegment:
        segment = DecodedSegment(self._start, end, self._first, last, False, None)
        self._first, self._start = last, end
        return segment
