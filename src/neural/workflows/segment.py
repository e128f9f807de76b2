"""Segment texts: called by `neural segment` and the board, the web server of `neural board`.

A text is split into elements (sentences or lines), and a model predicts P(boundary): the
probability that a segment begins at an element. A pipeline (tasks/segmentation/pipeline.py) does
all of it: features of the elements, model, calibrated probabilities, boundaries.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from neural.core.errors import TaskError
from neural.core.page_section import PageSection
from neural.core.printed_sections import PrintedSections
from neural.tasks.segmentation.boundary_encoding import Boundaries
from neural.tasks.segmentation.document import SegmentationDocument
from neural.tasks.segmentation.pipeline import (
    ElementProgress,
    SegmentationPipeline,
    load_shipped_pipeline,
    pipeline_from_run,
)
from neural.tasks.segmentation.reader import RawText, decode_text, read_text
from neural.tasks.segmentation.text_splitting import ElementUnit, make_title

if TYPE_CHECKING:
    from neural.runs.find import RunName
    from neural.runs.run import Run

MAX_NAME_LENGTH = 255
"""A longer text is not the name of a file."""
PROBABILITY_DIGITS = 6
"""Decimals of probabilities in JSON."""


def load_run_pipeline(run: Run, *, uncalibrated: bool = False) -> SegmentationPipeline:
    """The pipeline of a segmentation run: best checkpoint, calibration and threshold."""
    # Imported here: a text needs no run, and the tasks of runs import much.
    from neural.workflows.trained_run import TrainedRunFolder

    return pipeline_from_run(TrainedRunFolder(run), uncalibrated=uncalibrated)


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
    """P(boundary) at its start; None for the first segment."""
    max_inner_probability: float
    """Largest P(boundary) inside the segment; 0 for one element."""
    title: str
    text: str


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class SegmentationResult(PrintedSections):
    """Segmentation of one text: a sequence of segments, which prints as a table."""

    raw: RawText
    document: SegmentationDocument
    probabilities: np.ndarray
    """P(boundary), (elements,)."""
    boundaries: Boundaries
    """True at the first element of each segment but the first, (elements,)."""
    pipeline: SegmentationPipeline
    threshold: float
    unit: ElementUnit

    @cached_property
    def segments(self) -> list[TextSegment]:
        """Segments in order; joined, they are the text."""
        edges = [0, *np.flatnonzero(self.boundaries).tolist(), len(self.document)]
        p, elements = self.probabilities, self.document.elements
        return [
            TextSegment(
                start=start,
                end=end,
                first=first,
                last=last,
                probability=float(p[first]) if first else None,
                max_inner_probability=float(p[first + 1 : last].max(initial=0)),
                title=make_title(elements[first:last]),
                text=self.raw.text[start:end],
            )
            for (first, last), (start, end) in zip(
                pairwise(edges), self.document.segment_spans(self.boundaries), strict=True
            )
        ]

    def __len__(self) -> int:
        return len(self.segments)

    def __iter__(self) -> Iterator[TextSegment]:
        return iter(self.segments)

    @overload
    def __getitem__(self, index: int) -> TextSegment: ...
    @overload
    def __getitem__(self, index: slice) -> list[TextSegment]: ...
    def __getitem__(self, index: int | slice) -> TextSegment | list[TextSegment]:
        return self.segments[index]

    def to_sections(self, width: int) -> list[PageSection]:
        """A table with offsets, P(boundary) and title of every segment."""
        rows = [
            (
                f"{segment.start:,}",
                f"{segment.end:,}",
                "" if segment.probability is None else f"{segment.probability:.2f}",
                segment.title,
            )
            for segment in self.segments
        ]
        head = ("start", "end", "P", "title")
        return [
            PageSection(title=self.raw.name, text=self.summary, table_head=head, table_rows=rows)
        ]

    @property
    def summary(self) -> str:
        """One line: sizes, pipeline and threshold."""
        elements, segments = len(self.document), len(self.segments)
        unit = self.unit if elements != 1 else self.unit[:-1]
        return (
            f"{segments:,} segment{'s' * (segments != 1)}, {elements:,} {unit}, "
            f"{len(self.raw.text):,} characters; "
            f"{self.pipeline.name}, threshold {self.threshold:.3g}"
        )

    def to_html(self) -> str:
        """Self-contained HTML page with the probability curve in the margin."""
        from neural.report.segmentation_page import SegmentView, render_segmentation_page

        elements, gaps = self.document.elements, self.document.gap_texts() or ()
        views = [
            SegmentView(
                segment.title,
                f"{segment.start:,} – {segment.end:,}",
                segment.probability,
                elements[segment.first : segment.last],
            )
            for segment in self.segments
        ]
        # gaps are the texts between elements: an empty line begins a paragraph
        paragraph_starts = [index for index, gap in enumerate(gaps) if gap.count("\n") > 1]
        return render_segmentation_page(
            self.raw.name,
            self.summary,
            views,
            self.probabilities,
            threshold=self.threshold,
            paragraph_starts=paragraph_starts,
            warnings=self.raw.notes,
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON: segments with their texts, elements with their probabilities."""
        text, encoding = self.raw.text, self.raw.encoding
        segments, byte_offset = [], 0
        for segment in self.segments:
            segment_text = text[segment.start : segment.end]
            size = len(segment_text.encode(encoding))
            segments.append(
                {
                    "start": segment.start,
                    "end": segment.end,
                    "bytes": [byte_offset, byte_offset + size],
                    "elements": [segment.first, segment.last],
                    "probability": None
                    if segment.probability is None
                    else round(segment.probability, PROBABILITY_DIGITS),
                    "title": segment.title,
                    "text": segment_text,
                }
            )
            byte_offset += size
        offsets = self.document.offsets or ()
        return {
            "file": self.raw.name,
            "encoding": encoding,
            "characters": len(text),
            "bytes": byte_offset,
            "segmenter": self.pipeline.name,
            "threshold": self.threshold,
            "unit": self.unit,
            "segments": segments,
            "elements": {
                "start": [start for start, _ in offsets],
                "end": [end for _, end in offsets],
                "probability": self.probabilities.round(PROBABILITY_DIGITS).tolist(),
            },
        }


def segment_text(
    raw: RawText,
    pipeline: SegmentationPipeline,
    *,
    min_elements: int | None = None,
    max_elements: int | None = None,
    threshold: float | None = None,
    unit: ElementUnit | None = None,
    on_progress: ElementProgress = lambda done, count: None,
) -> SegmentationResult:
    """Segment a text; arguments that are None take the pipeline's values.

    A segment begins where P(boundary) reaches `threshold`, unless a segment would then have fewer
    than `min_elements` or more than `max_elements`. `on_progress` gets the number of elements done,
    and of all.
    """
    unit = unit or pipeline.unit
    document = SegmentationDocument.from_text(raw.text, raw.name, unit=unit)
    probabilities = pipeline.boundary_probabilities(
        pipeline.logits(document, on_progress=on_progress)
    )
    return SegmentationResult(
        raw=raw,
        document=document,
        probabilities=probabilities,
        pipeline=pipeline,
        unit=unit,
        boundaries=pipeline.decode(probabilities, min_elements, max_elements, threshold),
        threshold=threshold or pipeline.threshold,
    )


@overload
def segment(
    text: str | Path,
    *,
    run: RunName | None = ...,
    min_elements: int | None = ...,
    max_elements: int | None = ...,
    threshold: float | None = ...,
    unit: ElementUnit | None = ...,
    runs: str | Path = ...,
) -> SegmentationResult: ...
@overload
def segment(
    text: Sequence[str | Path],
    *,
    run: RunName | None = ...,
    min_elements: int | None = ...,
    max_elements: int | None = ...,
    threshold: float | None = ...,
    unit: ElementUnit | None = ...,
    runs: str | Path = ...,
) -> list[SegmentationResult]: ...
def segment(
    text: str | Path | Sequence[str | Path],
    *,
    run: RunName | None = None,
    min_elements: int | None = None,
    max_elements: int | None = None,
    threshold: float | None = None,
    unit: ElementUnit | None = None,
    runs: str | Path = "runs",
) -> SegmentationResult | list[SegmentationResult]:
    """Split a text into segments by topic, with the probability of every boundary.

        for part in neural.segment(text):
            print(part.start, part.end, part.probability, part.title)

    `text` is the text itself; a `pathlib.Path` is a file to read; a list gives a list of results.
    `run` is a segmentation run, its name or path; by default the segmenter of the package is used.
    `min_elements` and `max_elements` limit the sentences or lines of a segment; a segment begins
    where its probability reaches `threshold`; `unit` is `sentences` or `lines`. The segments joined
    are the text without any change; `start` and `end` count characters. TaskError for an empty
    text.
    """
    if min_elements and max_elements and min_elements > max_elements:
        raise TaskError(f"min_elements {min_elements} is larger than max_elements {max_elements}")
    pipeline = load_shipped_pipeline() if run is None else _load_pipeline(run, runs)
    sources = [text] if isinstance(text, str | Path) else list(text)
    results = [
        segment_text(
            _read_source(source),
            pipeline,
            min_elements=min_elements,
            max_elements=max_elements,
            threshold=threshold,
            unit=unit,
        )
        for source in sources
    ]
    return results[0] if isinstance(text, str | Path) else results


def _load_pipeline(run: RunName, runs: str | Path) -> SegmentationPipeline:
    from neural.runs.find import open_run

    return load_run_pipeline(open_run(run, runs=runs))


def _read_source(source: str | Path) -> RawText:
    """A text, or the text of a file. TaskError for a text that is the name of a file."""
    if isinstance(source, Path):
        return read_text(source)
    # A text is never read as a path: it may come from somebody else.
    is_name = len(source) < MAX_NAME_LENGTH and not re.search(r"\s", source)
    if is_name and source and Path(source).is_file():
        raise TaskError(f'{source!r} is the name of a file: pass `Path("{source}")`')
    # Lone surrogates, which a text of Python may have, cannot be encoded.
    return decode_text(source.encode("utf-8", errors="replace"), "the text")


def max_pool(values: Sequence[float] | np.ndarray, columns: int) -> np.ndarray:
    """Maximum over each of `columns` chunks of nearly equal size, to draw a curve as text."""
    values = np.asarray(values)
    edges = np.linspace(0, len(values), min(columns, len(values)) + 1).astype(int)[:-1]
    return np.maximum.reduceat(values, edges)
