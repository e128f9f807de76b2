"""Read a text of any length as blocks of elements with boundary probabilities, in bounded memory.

Two steps, each with fixed sizes, so that the result does not depend on how the text arrives:

1. `read_text_blocks` parses at most `MAX_BLOCK_CHARACTERS` at once. A longer text is cut at an
   element of the parsed block: the last element after a blank line, else the last in a new line,
   else the last one. The next block begins with that element.
2. `score_elements` runs the pipeline on windows of `WINDOW_ELEMENTS` elements. A window overlaps
   each neighbour by twice `CONTEXT_ELEMENTS`; probabilities are taken from the window in which an
   element has more context. A text with at most `WINDOW_ELEMENTS` elements is one window.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from neural.core.errors import TaskError
from neural.tasks.segmentation.author_headings import follow_layout_alone
from neural.tasks.segmentation.boundary_encoding import Boundaries
from neural.tasks.segmentation.document import SegmentationDocument
from neural.tasks.segmentation.inference import MAX_SINGLE_PASS_ELEMENTS
from neural.tasks.segmentation.structure import Layout, Markup, guess_markup
from neural.tasks.segmentation.text_splitting import ElementUnit

if TYPE_CHECKING:
    from neural.tasks.segmentation.pipeline import SegmentationPipeline

MAX_BLOCK_CHARACTERS = 1 << 19
"""A text of at most this length is parsed as a whole."""
MAX_CHUNK_CHARACTERS = 1 << 18
"""Longer chunks are divided."""
MAX_GROWTH = 8
"""A block without a place to cut grows to at most this number of times its size."""
WINDOW_ELEMENTS = MAX_SINGLE_PASS_ELEMENTS
"""Elements that go through features and model together."""
CONTEXT_ELEMENTS = 256
"""Elements at either end of a window that serve as context for the others only."""
_FENCE = re.compile(r"[ \t>]*(?:`{3,}|~{3,})[^\n]*\n")
"""The opening line of a code fence."""
DecodeWindow = Callable[[np.ndarray, np.ndarray, bool, bool], Boundaries | None]
"""Called with P(boundary) and can_begin of a window, whether it is the whole text, and whether the
probabilities come from the layout alone."""
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, eq=False)
class ElementTable:
    """Consecutive elements of a text. Positions count characters of the full text."""

    elements: tuple[str, ...]
    offsets: np.ndarray
    """Start and end of each element, (n, 2)."""
    starts: np.ndarray
    """Position where a segment begins that begins with the element, (n,)."""
    end: int
    """Position of the start of the next element's segment, or the end of the text."""
    layout: Layout | None
    text: str
    """The text from `starts[0]` to `end`."""
    markup: Markup = "plain"

    def __len__(self) -> int:
        return len(self.elements)

    def slice(self, first: int, last: int) -> ElementTable:
        """The elements from `first` to `last`, which is excluded."""
        if first == 0 and last == len(self):
            return self
        start, offset = int(self.starts[first]), int(self.starts[0])
        end = int(self.starts[last]) if last < len(self) else self.end
        return ElementTable(
            self.elements[first:last],
            self.offsets[first:last],
            self.starts[first:last],
            end,
            None if self.layout is None else map_layout(lambda rows: rows[first:last], self.layout),
            self.text[start - offset : end - offset],
            self.markup,
        )

    @staticmethod
    def concatenate(tables: list[ElementTable]) -> ElementTable:
        """The elements of tables that follow each other."""
        if len(tables) == 1:
            return tables[0]
        layouts = [table.layout for table in tables if table.layout is not None]
        return ElementTable(
            tuple(element for table in tables for element in table.elements),
            np.concatenate([table.offsets for table in tables]),
            np.concatenate([table.starts for table in tables]),
            tables[-1].end,
            map_layout(lambda *rows: np.concatenate(rows), *layouts)
            if len(layouts) == len(tables)
            else None,
            "".join(table.text for table in tables),
            tables[0].markup,
        )

    def to_document(self, name: str) -> SegmentationDocument:
        """A document of these elements alone."""
        offset = int(self.starts[0])
        return SegmentationDocument(
            name,
            self.elements,
            offsets=tuple(map(tuple, (self.offsets - offset).tolist())),
            text=self.text,
            layout=self.layout,
        )

    @property
    def can_begin(self) -> np.ndarray:
        """Whether a segment may begin at each element, (n,)."""
        return np.ones(len(self), bool) if self.layout is None else self.layout.can_begin


def map_layout(function: Any, *layouts: Layout) -> Layout:
    """Layout whose arrays are `function` of the arrays of the same name."""
    return replace(
        layouts[0],
        **{
            field.name: function(*(getattr(layout, field.name) for layout in layouts))
            for field in fields(layouts[0])
        },
    )


@dataclass(frozen=True, kw_only=True)
class ParsingOptions:
    """How a text is split into elements."""

    unit: ElementUnit = "sentences"
    markup: Markup = "auto"
    suffix: str | None = None
    """Ending of the name of the file, which may tell the markup."""
    max_characters: int | None = None
    """A longer text is parsed in blocks; `MAX_BLOCK_CHARACTERS` by default."""


def read_text_blocks(
    chunks: Iterable[str], name: str, options: ParsingOptions
) -> Iterator[ElementTable]:
    """Elements of a text that arrives in chunks of any size. TaskError for an empty text."""
    reader = _BlockReader(chunks, name, options)
    while (table := reader.read()) is not None:
        yield table


class _BlockReader:
    """Parses a text block by block."""

    def __init__(self, chunks: Iterable[str], name: str, options: ParsingOptions) -> None:
        self._buffer = _ChunkBuffer(chunks)
        self._name, self._unit, self._suffix = name, options.unit, options.suffix
        self._max_characters = options.max_characters or MAX_BLOCK_CHARACTERS
        self._markup = options.markup
        self._position = 0
        self._prefix = ""
        """Put before the next block: the opening line of a fence that goes on there."""
        self._is_finished = False

    def read(self) -> ElementTable | None:
        """The elements of the next block; None after the last one."""
        if self._is_finished:
            return None
        size = self._max_characters
        while True:
            text, self._is_finished = self._buffer.peek(size)
            document, starts = self._parse(text)
            cut = len(text) if self._is_finished else self._find_cut(document, starts, size, text)
            if cut or self._is_finished:
                break
            size *= 2
        if document is None:
            # No cut leaves only white space after it, so there is nothing else in the text.
            raise TaskError(f"{self._name} is empty: there is nothing to segment")
        table = _make_table(document, starts, text[:cut], self._position, len(self._prefix))
        table = replace(table, markup=self._markup)
        self._prefix = _reopen_fence(document, cut + len(self._prefix))
        self._position += cut
        self._buffer.drop(cut)
        return table

    def _parse(self, text: str) -> tuple[SegmentationDocument | None, np.ndarray]:
        """The document of a block, None for white space; and the starts of its elements."""
        if not text.strip().strip("\ufeff"):
            return None, np.zeros(0, int)
        if self._markup == "auto":
            self._markup = guess_markup(text, self._suffix)
        document = SegmentationDocument.from_text(
            self._prefix + text, self._name, unit=self._unit, markup=self._markup
        )
        return document, np.maximum(_find_starts(document) - len(self._prefix), 0)

    def _find_cut(
        self, document: SegmentationDocument | None, starts: np.ndarray, size: int, text: str
    ) -> int:
        """Length of the block; 0 if more text is needed to find a good one."""
        cut = 0 if document is None else _find_element_cut(starts, document.layout, size // 2)
        if not cut and size >= MAX_GROWTH * self._max_characters:
            cut = _find_forced_cut(text)
        return cut


class _ChunkBuffer:
    """Text that has arrived and is not yet parsed."""

    def __init__(self, chunks: Iterable[str]) -> None:
        # Dropping the start of a long text again and again would take quadratic time.
        self._chunks = (
            chunk[start : start + MAX_CHUNK_CHARACTERS]
            for chunk in chunks
            for start in range(0, len(chunk), MAX_CHUNK_CHARACTERS)
        )
        self._text = ""

    def peek(self, size: int) -> tuple[str, bool]:
        """The next `size` characters, or all that are left; and whether these are all."""
        parts, length = [self._text], len(self._text)
        while length <= size and (chunk := next(self._chunks, None)) is not None:
            parts.append(chunk)
            length += len(chunk)
        self._text = "".join(parts)
        return self._text[:size], length <= size

    def drop(self, size: int) -> None:
        self._text = self._text[size:]


def replace_surrogates(text: str) -> str:
    """A text of Python may have lone surrogates, which cannot be encoded: `?` in their place."""
    return text if text.isascii() else _SURROGATE.sub("?", text)


def _find_element_cut(starts: np.ndarray, layout: Layout | None, low: int) -> int:
    """Position where the next block begins: the best start of an element beyond `low`, else 0."""
    starts = starts[1:]
    is_candidate = starts > low
    if layout is not None:
        is_candidate &= layout.can_begin[1:]
        new_line = layout.begins_line[1:]
        after_blank = new_line & (layout.blank_lines[1:] > 0)
        for is_better in (after_blank, new_line):
            better = np.flatnonzero(is_candidate & is_better)
            if len(better):
                return int(starts[better[-1]])
    candidates = np.flatnonzero(is_candidate)
    # The last element may be incomplete, but the cut is before it.
    return int(starts[candidates[-1]]) if len(candidates) else 0


def _find_forced_cut(text: str) -> int:
    """Position to cut a text without elements to cut at: after a line, a word, or anywhere.

    There is more than white space on both sides of it. 0 if the text is mostly white space.
    """
    start, end = len(text) - len(text.lstrip()), len(text.rstrip())
    low = max(start, len(text) // 2)
    if end - 1 <= low:
        return 0
    for line_or_word_end in ("\n", " "):
        position = text.rfind(line_or_word_end, low, end)
        if position >= 0:
            return position + 1
    return end - 1


def _reopen_fence(document: SegmentationDocument, cut: int) -> str:
    """The opening line of the code fence that a cut divides, to be put before the next block."""
    if document.layout is None or document.offsets is None or document.text is None:
        return ""
    start, end = document.offsets[-1]
    is_divided = bool(document.layout.is_code[-1]) and start < cut < end
    match = _FENCE.match(document.text, start) if is_divided else None
    return match.group() if match else ""


def _find_starts(document: SegmentationDocument) -> np.ndarray:
    """Where a segment begins that begins with each element, (n,)."""
    starts = np.array(document.offsets)[:, 0]
    # An element inside a line has no indentation before it.
    begins_line = np.ones(len(document), bool)
    if document.layout is not None:
        begins_line = document.layout.begins_line.astype(bool)
    begins_line[0] = True
    starts[begins_line] = [start for start, _ in document.segment_spans(begins_line)]
    return starts


def _make_table(
    document: SegmentationDocument,
    starts: np.ndarray,
    text: str,
    position: int,
    prefix_length: int,
) -> ElementTable:
    """The elements of a block that lie in its `text`, which begins at a position of the full text.

    The document may have a prefix before the text, and elements after it. `starts` are positions in
    the text where segments begin that begin with its elements.
    """
    count = max(1, int(np.searchsorted(starts, len(text))))
    assert document.offsets is not None
    offsets = np.array(document.offsets[:count]) - prefix_length
    layout = document.layout
    return ElementTable(
        document.elements[:count],
        np.clip(offsets, 0, len(text)) + position,
        starts[:count] + position,
        position + len(text),
        None if layout is None else map_layout(lambda rows: rows[:count], layout),
        text,
    )


@dataclass(frozen=True, eq=False)
class ScoredElements:
    """Consecutive elements with their boundary probabilities."""

    table: ElementTable
    probabilities: np.ndarray
    """P(boundary), (n,)."""
    boundaries: Boundaries | None
    """Boundaries by the decoder of the pipeline within the window, if they were asked for, (n,)."""
    is_whole_text: bool
    """True if the text has no other elements."""
    note: str | None = None
    """Why the probabilities come from the layout alone, in a sentence; None if from the model."""


def score_elements(
    tables: Iterable[ElementTable],
    pipeline: SegmentationPipeline,
    name: str,
    *,
    ignore_layout: bool = False,
    decode: DecodeWindow = lambda *_: None,
) -> Iterator[ScoredElements]:
    """Boundary probabilities of all elements, in consecutive blocks.

    `decode` gives the boundaries of a window, or None. `ignore_layout` hides headings, blank lines
    and other layout from the features.
    """
    pending: list[ElementTable] = []
    count, context = 0, 0
    for table in tables:
        pending.append(table)
        count += len(table)
        while count > WINDOW_ELEMENTS:
            window = ElementTable.concatenate(pending)
            last = WINDOW_ELEMENTS - CONTEXT_ELEMENTS
            yield _score_window(
                window.slice(0, WINDOW_ELEMENTS),
                slice(context, last),
                pipeline,
                name,
                ignore_layout,
                decode,
            )
            context = CONTEXT_ELEMENTS
            pending = [window.slice(last - context, len(window))]
            count = len(pending[0])
    window = ElementTable.concatenate(pending)
    core = slice(context, len(window))
    yield _score_window(window, core, pipeline, name, ignore_layout, decode)


def _score_window(
    window: ElementTable,
    core: slice,
    pipeline: SegmentationPipeline,
    name: str,
    ignore_layout: bool,
    decode: DecodeWindow,
) -> ScoredElements:
    document = window.to_document(name)
    if ignore_layout:
        document = document.without_layout()
    note = pipeline.describe_unknown_language(document)
    if note is None:
        probabilities = pipeline.probabilities(document)
    else:
        probabilities = follow_layout_alone(document.layout, len(document))
    is_whole_text = core == slice(0, len(window))
    boundaries = decode(probabilities, window.can_begin, is_whole_text, note is not None)
    return ScoredElements(
        window.slice(core.start, core.stop),
        probabilities[core],
        None if boundaries is None else boundaries[core],
        is_whole_text,
        note,
    )
