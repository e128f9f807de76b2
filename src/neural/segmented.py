"""A text that was cut: its parts with exact places, and the probability at every gap; for people and for machines.

    result = segmented(raw, cutter, least=2, most=40)
    [result.raw.text[part.start : part.end] for part in result.parts]      joined, they are the text
    result.to_dict()                                                       what `neural segment --format json` writes
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from neural.segmenting import Cutter
from neural.tasks.cutting.document import Document
from neural.tasks.cutting.elements import Unit
from neural.tasks.cutting.headings import title
from neural.tasks.cutting.masses import Boundaries
from neural.tasks.cutting.reading import Raw
from neural.views.segmented_page import Shown, segmented_page

DIGITS = 6
"""Of probabilities in JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A stretch of the text."""

    start: int
    """In characters."""
    end: int
    first: int
    """Its first element, counted from 0."""
    last: int
    """The element after its last."""
    probability: float | None
    """That a part begins here; None for the first, which begins in any case."""
    inside: float
    """The largest probability at a gap inside it: how near it was to be cut again. 0 for one element."""
    title: str


@dataclass(frozen=True, eq=False, kw_only=True)
class Segmented:
    """The result of cutting one text."""

    raw: Raw
    document: Document
    probabilities: np.ndarray
    """(elements,), P(a part begins here)."""
    boundaries: Boundaries
    cutter: Cutter
    threshold: float
    unit: Unit

    @cached_property
    def parts(self) -> list[Part]:
        """In the order of the text; joined, they are the text."""
        edges = [0, *np.flatnonzero(self.boundaries).tolist(), len(self.document)]
        p, elements = self.probabilities, self.document.elements
        return [
            Part(
                start=start, end=end, first=first, last=last, probability=float(p[first]) if first else None,
                inside=float(p[first + 1 : last].max(initial=0)), title=title(elements[first:last]),
            )
            for (first, last), (start, end) in zip(
                pairwise(edges), self.document.pieces(self.boundaries), strict=True
            )
        ]  # fmt: skip

    @property
    def summary(self) -> str:
        """What was found, and with what, in a line."""
        count, found = len(self.document), len(self.parts)
        return (
            f"{found:,} part{'s' * (found != 1)}, {count:,} {self.unit if count != 1 else self.unit[:-1]}, "
            f"{len(self.raw.text):,} characters; {self.cutter.name}, threshold {self.threshold:.3g}"
        )

    def to_html(self) -> str:
        """A page that is one file, with the curve of probabilities in the margin."""
        elements, gaps = self.document.elements, self.document.gaps() or ()
        shown = [
            Shown(one.title, f"{one.start:,} – {one.end:,}", one.probability, elements[one.first : one.last])
            for one in self.parts
        ]
        blank = [at for at, gap in enumerate(gaps) if gap.count("\n") > 1]
        return segmented_page(
            self.raw.name, self.summary, shown, self.probabilities, threshold=self.threshold, paragraphs=blank,
            remarks=self.raw.remarks,
        )  # fmt: skip

    def to_dict(self) -> dict[str, Any]:
        """Plain data: the parts with their texts, and all elements with their probabilities."""
        text, encoding = self.raw.text, self.raw.encoding
        parts, byte = [], 0
        for one in self.parts:
            piece = text[one.start : one.end]
            size = len(piece.encode(encoding))
            parts.append({
                "start": one.start, "end": one.end, "bytes": [byte, byte + size], "elements": [one.first, one.last],
                "probability": None if one.probability is None else round(one.probability, DIGITS),
                "title": one.title, "text": piece,
            })  # fmt: skip
            byte += size
        places = self.document.offsets or ()
        return {
            "file": self.raw.name, "encoding": encoding, "characters": len(text), "bytes": byte,
            "segmenter": self.cutter.name, "threshold": self.threshold, "unit": self.unit, "parts": parts,
            "elements": {
                "start": [a for a, _ in places], "end": [b for _, b in places],
                "probability": self.probabilities.round(DIGITS).tolist(),
            },
        }  # fmt: skip


def segmented(
    raw: Raw, cutter: Cutter, *, least: int | None = None, most: int | None = None, threshold: float | None = None,
    unit: Unit | None = None, tell: Callable[[int, int], None] = lambda done, count: None,
) -> Segmented:  # fmt: skip
    """Cut a text; what is not said is as the segmenter has it. `tell` hears how far a long one is."""
    unit = unit or cutter.unit
    document = Document.of(raw.text, raw.name, unit=unit)
    probabilities = cutter.boundary_probabilities(cutter.scores(document, tell=tell))
    return Segmented(
        raw=raw, document=document, probabilities=probabilities, cutter=cutter, unit=unit,
        boundaries=cutter.cut_at(probabilities, least, most, threshold), threshold=threshold or cutter.threshold,
    )  # fmt: skip


def highest(values: Sequence[float] | np.ndarray, columns: int) -> np.ndarray:
    """The largest value in each of so many stretches of one size, as nearly as can be: a curve that fits a line."""
    values = np.asarray(values)
    edges = np.linspace(0, len(values), min(columns, len(values)) + 1).astype(int)[:-1]
    return np.maximum.reduceat(values, edges)
