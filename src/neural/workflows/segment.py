"""Segment texts: called by `neural segment` and the board, the web server of `neural board`.

A text is split into elements (sentences or lines), and a model predicts P(boundary): the
probability that a segment begins at an element.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from neural.report.segmentation_page import SegmentView, render_segmentation_page
from neural.runs.run import Run
from neural.tasks.segmentation.boundary_encoding import Boundaries
from neural.tasks.segmentation.document import SegmentationDocument
from neural.tasks.segmentation.pipeline import (
    ElementProgress,
    SegmentationPipeline,
    pipeline_from_run,
)
from neural.tasks.segmentation.reader import RawText
from neural.tasks.segmentation.text_splitting import ElementUnit, make_title
from neural.workflows.trained_run import OpenedRun

PROBABILITY_DIGITS = 6
"""Decimals of probabilities in JSON."""


def load_run_pipeline(run: Run, *, uncalibrated: bool = False) -> SegmentationPipeline:
    """The pipeline of a segmentation run: best checkpoint, calibration and threshold."""
    return pipeline_from_run(OpenedRun(run), uncalibrated=uncalibrated)


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


@dataclass(frozen=True, eq=False, kw_only=True)
class SegmentationResult:
    """Segmentation of one text."""

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
            )
            for (first, last), (start, end) in zip(
                pairwise(edges), self.document.segment_spans(self.boundaries), strict=True
            )
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

    `threshold` is the P(boundary) from which a segment begins, unless its length would be outside
    of `min_elements` to `max_elements`. `on_progress` gets the number of elements done, and of all.
    """
    unit = unit or pipeline.unit
    document = SegmentationDocument.from_text(raw.text, raw.name, unit=unit)
    probabilities = pipeline.boundary_probabilities(
        pipeline.scores(document, on_progress=on_progress)
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


def max_pool(values: Sequence[float] | np.ndarray, columns: int) -> np.ndarray:
    """Maximum over each of `columns` chunks of nearly equal size, for a curve in a text line."""
    values = np.asarray(values)
    edges = np.linspace(0, len(values), min(columns, len(values)) + 1).astype(int)[:-1]
    return np.maximum.reduceat(values, edges)
