"""A document: elements in their order, and where one part ends and the next begins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from neural.tasks.cutting.elements import Unit, spans
from neural.tasks.cutting.wrapping import margin


@dataclass(frozen=True, eq=False)
class Document:
    """Lines of a song, sentences of an article, utterances of a talk."""

    name: str
    """What messages call it."""
    elements: tuple[str, ...]
    """Without the white space around them."""
    labels: np.ndarray | None = None
    """A number per element, where the truth is known by labels: a part begins where the label changes."""
    boundaries: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=bool))
    """True where a part begins at this element; the first element never counts. None given: nowhere."""
    offsets: tuple[tuple[int, int], ...] | None = None
    """Where each element begins and ends in `text`, in characters."""
    text: str | None = None
    """The whole text, where the elements were cut from one; what lies between them is white space."""
    sources: tuple[str, ...] | None = None
    """Of a composed document: the name of the text that each element was taken from."""

    def __post_init__(self) -> None:
        count = len(self.elements)
        if not count:
            raise ValueError(f"{self.name} has no elements: it is empty")
        if self.labels is not None and len(self.labels) != count:
            raise ValueError(f"{self.name} has {count} elements and {len(self.labels)} labels")
        if self.labels is not None and not len(self.boundaries):
            object.__setattr__(self, "boundaries", np.r_[False, np.diff(self.labels) != 0])
        if self.sources is not None and len(self.sources) != count:
            raise ValueError(f"{self.name} has {count} elements and the sources of {len(self.sources)}")
        given = np.array(self.boundaries if len(self.boundaries) else np.zeros(count), dtype=bool)
        if len(given) != count:
            raise ValueError(f"{self.name} has {count} elements and {len(given)} boundaries")
        given[0] = False
        object.__setattr__(self, "boundaries", given)

    def __len__(self) -> int:
        return len(self.elements)

    @classmethod
    def of(cls, text: str, name: str = "the text", *, unit: Unit = "sentences") -> Document:
        """A raw text cut into elements, with their places; ValueError where there is nothing but white space."""
        places = spans(text, unit)
        return cls(name, tuple(text[a:b] for a, b in places), offsets=tuple(places), text=text)

    def pieces(self, boundaries: np.ndarray) -> list[tuple[int, int]]:
        """Where the parts that `boundaries` make begin and end in the text; joined, they are the text.

        A part begins with the line of its first element, so indentation goes along; blank lines end the part before.
        """
        if self.offsets is None or self.text is None:
            raise ValueError(f"{self.name} was not cut from a text: there are no places to tell")
        starts = [0]
        for index in np.flatnonzero(boundaries):
            if index == 0:
                continue
            before, start = self.offsets[index - 1][1], self.offsets[index][0]
            indent = len(margin(self.text[before:start]))
            starts.append(start if before + indent == start else start - indent)
        return list(zip(starts, [*starts[1:], len(self.text)], strict=True))

    def gaps(self) -> list[str] | None:
        """What stands before each element, back to the one before, where the text is known."""
        if self.offsets is None or self.text is None:
            return None
        ends = [0, *(end for _, end in self.offsets[:-1])]
        return [self.text[end:start] for end, (start, _) in zip(ends, self.offsets, strict=True)]


def parts(document: Document, boundaries: np.ndarray | None = None) -> list[tuple[str, ...]]:
    """The elements of every part; by the truth, unless other boundaries are given."""
    cuts = np.flatnonzero(document.boundaries if boundaries is None else boundaries)
    edges = [0, *(int(one) for one in cuts if one), len(document)]
    return [document.elements[a:b] for a, b in pairwise(edges)]


def joined(
    name: str, sections: Sequence[Sequence[str]], sources: Sequence[str] | None = None
) -> Document:
    """A document of known parts, one after the other; empty ones are left out.

    `sources` names the text that each part was taken from.
    """
    origins = None
    if sources is not None:
        pairs = zip(sections, sources, strict=True)
        origins = tuple(source for section, source in pairs for _ in section)
    sections = [section for section in sections if section]
    elements = tuple(element for section in sections for element in section)
    boundaries = np.zeros(len(elements), dtype=bool)
    boundaries[np.cumsum([0, *map(len, sections)])[:-1]] = True
    return Document(name, elements, boundaries=boundaries, sources=origins)
