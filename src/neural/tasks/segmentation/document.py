"""A document: its elements (sentences, lines or paragraphs) and the boundaries of its segments.

A boundary is an element at which a segment begins. Every document begins with a segment, so element
0 is never marked as a boundary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np

from neural.tasks.segmentation.line_wrapping import get_indentation
from neural.tasks.segmentation.structure import Layout, Markup, parse_structure
from neural.tasks.segmentation.text_splitting import ElementUnit


@dataclass(frozen=True, eq=False)
class SegmentationDocument:
    """Elements of one text: lines of a song, sentences or paragraphs of an article."""

    name: str
    """Used in messages to the user."""
    elements: tuple[str, ...]
    """Texts of the elements, without markup and surrounding white space."""
    labels: np.ndarray | None = None
    """An integer label per element, (n,), if the data has labels."""
    boundaries: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=bool))
    """True where a segment begins, (n,); False at element 0.

    If the argument is left out, boundaries are where the label changes; without labels there are
    none.
    """
    offsets: tuple[tuple[int, int], ...] | None = None
    """Start and end of each element in `text`, in characters."""
    text: str | None = None
    """The full text, if the elements were cut from one; only white space lies between them."""
    layout: Layout | None = None
    """Headings, blank lines and the like, if known."""
    sources: tuple[str, ...] | None = None
    """Name of the text that each element was taken from, if the document joins several texts."""

    def __post_init__(self) -> None:
        count = len(self.elements)
        if not count:
            raise ValueError(f"{self.name} has no elements: it is empty")
        if self.labels is not None and len(self.labels) != count:
            raise ValueError(f"{self.name} has {count} elements and {len(self.labels)} labels")
        if self.labels is not None and not len(self.boundaries):
            object.__setattr__(self, "boundaries", np.r_[False, np.diff(self.labels) != 0])
        if self.sources is not None and len(self.sources) != count:
            raise ValueError(
                f"{self.name} has {count} elements, but `sources` has {len(self.sources)} entries"
            )
        if self.layout is not None and len(self.layout) != count:
            raise ValueError(
                f"{self.name} has {count} elements, but its layout has {len(self.layout)} entries"
            )
        boundaries = np.array(
            self.boundaries if len(self.boundaries) else np.zeros(count), dtype=bool
        )
        if len(boundaries) != count:
            raise ValueError(f"{self.name} has {count} elements and {len(boundaries)} boundaries")
        boundaries[0] = False
        object.__setattr__(self, "boundaries", boundaries)

    def __len__(self) -> int:
        return len(self.elements)

    @classmethod
    def from_text(
        cls,
        text: str,
        name: str = "the text",
        *,
        unit: ElementUnit = "sentences",
        markup: Markup = "auto",
    ) -> SegmentationDocument:
        """Split a raw text into elements, with layout. ValueError if it holds only white space.

        `markup` is `plain`, `markdown`, `html`, or `auto` to guess it from the text.
        """
        structure = parse_structure(text, unit, markup)
        return cls(
            name,
            tuple(structure.elements),
            offsets=tuple(structure.offsets),
            text=text,
            layout=structure.layout,
        )

    def without_layout(self) -> SegmentationDocument:
        """The same document without its layout; code blocks and tables stay single elements."""
        return replace(self, layout=None)

    def segment_spans(self, boundaries: np.ndarray) -> list[tuple[int, int]]:
        """Start and end of every segment in `text`, in characters; together they cover the text.

        `boundaries` is True at the elements where a segment begins. The indentation before the
        first element of a segment belongs to that segment. All other white space between two
        segments belongs to the first of them.
        """
        if self.offsets is None or self.text is None:
            raise ValueError(f"{self.name} was not split from a text, so it has no offsets")
        starts = [0]
        for index in np.flatnonzero(boundaries):
            if index == 0:
                continue
            previous_end, start = self.offsets[index - 1][1], self.offsets[index][0]
            indent = len(get_indentation(self.text[previous_end:start]))
            # If the "indentation" is all the space between the two elements, they are in the same
            # line, so it is not really an indentation.
            is_same_line = previous_end + indent == start
            starts.append(start if is_same_line else start - indent)
        return list(zip(starts, [*starts[1:], len(self.text)], strict=True))

    def gap_texts(self) -> list[str] | None:
        """White space before each element, back to the end of the previous element.

        None if `text` is unknown.
        """
        if self.offsets is None or self.text is None:
            return None
        ends = [0, *(end for _, end in self.offsets[:-1])]
        return [self.text[end:start] for end, (start, _) in zip(ends, self.offsets, strict=True)]


def split_segments(
    document: SegmentationDocument, boundaries: np.ndarray | None = None
) -> list[tuple[str, ...]]:
    """Elements of every segment. `boundaries` defaults to those of the document."""
    starts = np.flatnonzero(document.boundaries if boundaries is None else boundaries)
    edges = [0, *(int(start) for start in starts if start), len(document)]
    return [document.elements[start:end] for start, end in pairwise(edges)]


def join_segments(
    name: str, segments: Sequence[Sequence[str]], sources: Sequence[str] | None = None
) -> SegmentationDocument:
    """Document that consists of these segments, in order; empty segments are left out.

    `sources` has the name of the text that each segment was taken from.
    """
    element_sources = None
    if sources is not None:
        pairs = zip(segments, sources, strict=True)
        element_sources = tuple(source for segment, source in pairs for _ in segment)
    segments = [segment for segment in segments if segment]
    elements = tuple(element for segment in segments for element in segment)
    boundaries = np.zeros(len(elements), dtype=bool)
    boundaries[np.cumsum([0, *map(len, segments)])[:-1]] = True
    return SegmentationDocument(name, elements, boundaries=boundaries, sources=element_sources)
