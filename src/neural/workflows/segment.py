"""Segment texts: `neural.segment`, `neural segment` and the board, the server of `neural board`.

A text is split into elements (sentences, lines or paragraphs), and a model predicts P(boundary):
the probability that a segment begins at an element. A pipeline (tasks/segmentation/pipeline.py)
does all of it: features of the elements, model, calibrated probabilities, boundaries. A stream
(tasks/segmentation/segment_stream.py) runs it on a text of any length, with limits on the segments.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from neural.core.errors import TaskError
from neural.core.page_section import PageSection
from neural.core.result import Result
from neural.core.table import Column, Table
from neural.tasks.segmentation.boundary_encoding import Boundaries
from neural.tasks.segmentation.document import SegmentationDocument
from neural.tasks.segmentation.document_stream import ElementTable, ScoredElements
from neural.tasks.segmentation.pipeline import (
    SegmentationPipeline,
    load_pipeline,
    load_shipped_pipeline,
    pipeline_from_run,
)
from neural.tasks.segmentation.reader import RawText, decode_text, read_text
from neural.tasks.segmentation.segment_stream import SegmentOptions, SegmentStream, TextSegment
from neural.tasks.segmentation.text_source import open_text_source
from neural.tasks.segmentation.text_splitting import ElementUnit

if TYPE_CHECKING:
    from neural.runs.find import RunName
    from neural.runs.run import Run
    from neural.tasks.segmentation.structure import Markup

MAX_NAME_LENGTH = 255
"""A longer text is not the name of a file, in bytes."""
PROBABILITY_DIGITS = 6
"""Decimals of probabilities in JSON."""
CharacterProgress = Callable[[int], None]
"""Called with the number of characters that are done."""


def load_run_pipeline(run: Run, *, uncalibrated: bool = False) -> SegmentationPipeline:
    """The pipeline of a segmentation run: best checkpoint, calibration and threshold."""
    # Imported here: a text needs no run, and the tasks of runs import much.
    from neural.training.trained_run import TrainedRunFolder

    return pipeline_from_run(TrainedRunFolder(run), uncalibrated=uncalibrated)


def describe_segmentation(stream: SegmentStream, segments: int, elements: int, size: int) -> str:
    """One line: sizes (numbers of segments, elements and characters), pipeline and limits."""
    unit = stream.unit if elements != 1 else stream.unit[:-1]
    options, limits = stream.options, f"threshold {stream.threshold:.3g}"
    if stream.uses_expected_pk and stream.notes:
        limits = "boundaries by the layout"
    elif stream.uses_expected_pk:
        limits = "boundaries chosen together (least expected Pk)"
    elif stream.min_elements > 1:
        limits += f", at least {stream.min_elements} {stream.unit}"
    if options.max_tokens is not None and options.counter is not None:
        limits += f", at most {options.max_tokens:,} tokens ({options.counter.name})"
    return (
        f"{segments:,} segment{'s' * (segments != 1)}, {elements:,} {unit}, {size:,} characters; "
        f"{stream.pipeline.name}, {limits}"
    )


def segment_to_dict(segment: TextSegment) -> dict[str, Any]:
    """Plain data for JSON: positions, probability and title of a segment, and its text."""
    data: dict[str, Any] = {"start": segment.start, "end": segment.end}
    if segment.overlap_start < segment.start:
        data["overlap_start"] = segment.overlap_start
    probability = segment.probability
    data |= {
        "tokens": segment.tokens,
        "probability": None if probability is None else round(probability, PROBABILITY_DIGITS),
        "title": segment.title,
        "text": segment.text,
    }
    for name in ("plain_text", "table_header"):
        if getattr(segment, name) is not None:
            data[name] = getattr(segment, name)
    return data


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class SegmentationResult(Result):
    """Segmentation of one text: a sequence of segments, which prints as a table."""

    raw: RawText
    document: SegmentationDocument
    probabilities: np.ndarray
    """P(boundary), (elements,)."""
    boundaries: Boundaries
    """True at the elements that a segment but the first begins with, (elements,)."""
    segments: list[TextSegment]
    """Segments in order; without overlap, their texts joined are the text."""
    pipeline: SegmentationPipeline
    threshold: float | None
    """A segment begins from this probability on; None if the least expected Pk decides."""
    unit: ElementUnit
    summary: str
    """One line: sizes, pipeline and limits."""

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
            PageSection(
                title=self.raw.name,
                text="\n".join([self.summary, *(f"note: {note}" for note in self.raw.notes)]),
                table_head=head,
                table_rows=rows,
            )
        ]

    def render_page(self) -> str:
        """Self-contained HTML page with the probability curve in the margin."""
        from neural.report.segmentation_page import SegmentView, render_segmentation_page

        gaps = self.document.gap_texts() or ()
        views = [
            SegmentView(
                segment.title,
                f"{segment.start:,} – {segment.end:,}",
                segment.probability,
                self._list_element_texts(segment),
                segment.first,
            )
            for segment in self.segments
        ]
        layout = self.document.layout
        # gaps are the texts between elements: an empty line begins a paragraph
        paragraph_starts = [index for index, gap in enumerate(gaps) if gap.count("\n") > 1]
        return render_segmentation_page(
            self.raw.name,
            self.summary,
            views,
            self.probabilities,
            threshold=self.threshold,
            code=() if layout is None else np.flatnonzero(layout.is_code).tolist(),
            paragraph_starts=paragraph_starts,
            warnings=self.raw.notes,
        )

    def _list_element_texts(self, segment: TextSegment) -> list[str]:
        """Texts of the elements of a segment; a divided element only as far as it belongs to it."""
        assert self.document.offsets is not None
        return [
            self.document.elements[index]
            if segment.start <= start and end <= segment.end
            else self.raw.text[max(start, segment.start) : min(end, segment.end)]
            for index, (start, end) in enumerate(
                self.document.offsets[segment.first : segment.last], start=segment.first
            )
        ]

    @property
    def tables(self) -> dict[str, Table]:
        """`segments`: offsets, probability, title and text."""
        names = ("start", "end", "probability", "title", "text")
        rows = [[getattr(segment, name) for name in names] for segment in self.segments]
        return {"segments": Table(tuple(map(Column, names)), rows)}

    def build_dict(self) -> dict[str, Any]:
        """Segments with their texts, elements with their probabilities."""
        text, encoding = self.raw.text, self.raw.encoding
        segments, byte_offset = [], 0
        for segment in self.segments:
            size = len(text[segment.start : segment.end].encode(encoding))
            segments.append(
                segment_to_dict(segment)
                | {
                    "bytes": [byte_offset, byte_offset + size],
                    "elements": [segment.first, segment.last],
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
    options: SegmentOptions | None = None,
    *,
    on_progress: CharacterProgress = lambda done: None,
) -> SegmentationResult:
    """Segment a text. TaskError if it is empty or the options do not fit."""
    blocks: list[ScoredElements] = []

    def collect(block: ScoredElements) -> None:
        blocks.append(block)
        on_progress(block.table.end)

    options = options or SegmentOptions()
    suffix = Path(raw.name).suffix
    stream = SegmentStream([raw.text], raw.name, pipeline, options, suffix=suffix, on_block=collect)
    segments = list(stream)
    table = ElementTable.concatenate([block.table for block in blocks])
    document = table.to_document(raw.name)
    boundaries = np.zeros(len(table), bool)
    starts = table.starts.tolist()
    boundaries[[part.first for part in segments[1:] if part.start == starts[part.first]]] = True
    return SegmentationResult(
        raw=replace(raw, notes=(*raw.notes, *stream.notes)),
        document=document,
        probabilities=np.concatenate([block.probabilities for block in blocks]),
        boundaries=boundaries,
        segments=segments,
        pipeline=pipeline,
        unit=stream.unit,
        threshold=stream.decision_threshold,
        summary=describe_segmentation(stream, len(segments), len(table), len(raw.text)),
    )


@overload
def segment(
    text: str | Path,
    *,
    max_tokens: int | None = ...,
    tokenizer: Any = ...,
    overlap: float = ...,
    min_tokens: int | None = ...,
    min_elements: int | None = ...,
    max_elements: int | None = ...,
    threshold: float | None = ...,
    unit: ElementUnit | None = ...,
    markup: Markup = ...,
    ignore_layout: bool = ...,
    run: RunName | None = ...,
    runs: str | Path = ...,
) -> SegmentationResult: ...
@overload
def segment(
    text: Sequence[str | Path],
    *,
    max_tokens: int | None = ...,
    tokenizer: Any = ...,
    overlap: float = ...,
    min_tokens: int | None = ...,
    min_elements: int | None = ...,
    max_elements: int | None = ...,
    threshold: float | None = ...,
    unit: ElementUnit | None = ...,
    markup: Markup = ...,
    ignore_layout: bool = ...,
    run: RunName | None = ...,
    runs: str | Path = ...,
) -> list[SegmentationResult]: ...
def segment(
    text: str | Path | Sequence[str | Path],
    *,
    max_tokens: int | None = None,
    tokenizer: Any = None,
    overlap: float = 0,
    min_tokens: int | None = None,
    min_elements: int | None = None,
    max_elements: int | None = None,
    threshold: float | None = None,
    unit: ElementUnit | None = None,
    markup: Markup = "auto",
    ignore_layout: bool = False,
    run: RunName | None = None,
    runs: str | Path = "runs",
) -> SegmentationResult | list[SegmentationResult]:
    """Split a text into segments by topic, with the probability of every boundary.

        for part in neural.segment(text, max_tokens=512, tokenizer="tokenizer.json"):
            print(part.start, part.end, part.tokens, part.probability, part.title)

    `text` is the text itself; a `pathlib.Path` is a file to read; a list gives a list of results.
    `run` is a segmentation run, its name or path; by default the segmenter of the package is used.

    No segment has more than `max_tokens` tokens; of all segmentations within this limit, the best
    one is taken. `tokenizer` counts tokens: `words` (the default), `chars`, the path of a
    tokenizer.json, a tokenizer of tokenizers, transformers, tiktoken or sentencepiece, or any
    function from a text to a number or a sequence. As few segments as possible have less than
    `min_tokens` tokens. `overlap` repeats that many tokens from before a segment in its `text`,
    within the limit; below 1 it is a share of `max_tokens`.

    `min_elements` and `max_elements` limit the sentences, lines or paragraphs (`unit`) of a
    segment; a segment begins where its probability reaches `threshold`. `markup` is `plain`,
    `markdown`, `html` or `auto`, which guesses. `ignore_layout` hides headings and blank lines from
    the model.

    The segments joined are the text without any change; `start` and `end` count characters.
    TaskError for an empty text. A `neural.Segmenter` is faster for many texts.
    """
    segmenter = Segmenter.load(
        run,
        runs=runs,
        max_tokens=max_tokens,
        tokenizer=tokenizer,
        overlap=overlap,
        min_tokens=min_tokens,
        min_elements=min_elements,
        max_elements=max_elements,
        threshold=threshold,
        unit=unit,
        markup=markup,
        ignore_layout=ignore_layout,
    )
    if isinstance(text, str | Path):
        return segmenter(text)
    return list(segmenter.batch(text))


class Segmenter:
    """Splits texts into segments. Loaded once, used for many texts.

        segmenter = neural.Segmenter.load(max_tokens=512, tokenizer="tokenizer.json", overlap=32)
        for part in segmenter(text):
            print(part.start, part.end, part.tokens, part.title)
        for result in segmenter.batch(texts):
            print(len(result))
        for part in segmenter.stream(open("book.txt")):
            print(part.title)

    The options are those of `neural.segment`; each method takes further ones for one call. Several
    threads may use a segmenter at the same time if its tokenizer allows that.
    """

    def __init__(
        self, pipeline: SegmentationPipeline, options: SegmentOptions | None = None
    ) -> None:
        self.pipeline = pipeline
        self.options = options or SegmentOptions()

    @classmethod
    def load(
        cls, source: RunName | None = None, *, runs: str | Path = "runs", **options: Any
    ) -> Segmenter:
        """Load the segmenter of the package, of a run (its name or path), or from a saved file.

        A saved file is the `.json` that `neural.tasks.segmentation.pipeline.save_pipeline` writes.
        """
        checked_options = SegmentOptions().replace(**options)
        if source is None:
            return cls(load_shipped_pipeline(), checked_options)
        if isinstance(source, str | Path) and Path(source).suffix == ".json":
            return cls(load_pipeline(Path(source)), checked_options)
        from neural.runs.find import open_run

        return cls(load_run_pipeline(open_run(source, runs=runs)), checked_options)

    def __call__(self, text: str | Path, **options: Any) -> SegmentationResult:
        """Segments of a text, or of a file if it is a `pathlib.Path`."""
        return segment_text(_read_source(text), self.pipeline, self.options.replace(**options))

    def batch(self, texts: Iterable[str | Path], **options: Any) -> Iterator[SegmentationResult]:
        """Results of many texts, in their order. A text is read when its result is asked for."""
        checked_options = self.options.replace(**options)
        return (segment_text(_read_source(text), self.pipeline, checked_options) for text in texts)

    def stream(
        self, chunks: Iterable[str] | Path, *, name: str = "the text", **options: Any
    ) -> Iterator[TextSegment]:
        """Segments of one text that arrives in chunks, each as soon as it cannot change any more.

        `chunks` may be a file that is open for reading, or a `pathlib.Path`. However the text is
        divided into chunks, the segments are those of the whole text. Memory does not grow with the
        text, only with its longest segment.
        """
        checked_options = self.options.replace(**options)
        if isinstance(chunks, Path):
            source = open_text_source(chunks)
            return SegmentStream(
                source.read_chunks(),
                source.name,
                self.pipeline,
                checked_options,
                suffix=chunks.suffix,
            )
        if isinstance(chunks, str):
            chunks = [chunks]
        return SegmentStream(_check_chunks(chunks), name, self.pipeline, checked_options)


def _check_chunks(chunks: Iterable[str]) -> Iterator[str]:
    for chunk in chunks:
        if not isinstance(chunk, str):
            raise TaskError(
                f"a chunk of the text is a {type(chunk).__name__}, not a str; "
                "open files in text mode"
            )
        yield chunk


def _read_source(source: str | Path) -> RawText:
    """A text, or the text of a file. TaskError for a text that is the name of a file."""
    if isinstance(source, Path):
        return read_text(source)
    if not isinstance(source, str):
        raise TaskError(
            f"a text is a str or, for a file, a pathlib.Path; got {type(source).__name__}"
        )
    # A text is never read as a path: it may come from somebody else.
    size = len(source.encode("utf-8", errors="replace"))
    is_name = size < MAX_NAME_LENGTH and not re.search(r"\s", source)
    if is_name and source and Path(source).is_file():
        raise TaskError(f'{source!r} is the name of a file: pass `Path("{source}")`')
    # Lone surrogates, which a text of Python may have, cannot be encoded.
    return decode_text(source.encode("utf-8", errors="replace"), "the text")


def max_pool(values: Sequence[float] | np.ndarray, columns: int) -> np.ndarray:
    """Maximum over each of `columns` chunks of nearly equal size, to draw a curve as text."""
    values = np.asarray(values)
    edges = np.linspace(0, len(values), min(columns, len(values)) + 1).astype(int)[:-1]
    return np.maximum.reduceat(values, edges)
