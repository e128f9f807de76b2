"""Write segments as JSON while they are computed, so that a long text needs little memory."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from neural.tasks.segmentation.document_stream import ScoredElements
from neural.tasks.segmentation.pipeline import SegmentationPipeline
from neural.tasks.segmentation.segment_stream import SegmentOptions, SegmentStream, TextSegment
from neural.tasks.segmentation.text_source import TextSource
from neural.workflows.segment import (
    PROBABILITY_DIGITS,
    CharacterProgress,
    describe_segmentation,
    segment_to_dict,
)


class StreamedSegmentation:
    """Segmentation of one source whose segments are not kept.

    After the iteration over the segments, it has the sizes, and the probability of every element.
    """

    def __init__(
        self,
        source: TextSource,
        pipeline: SegmentationPipeline,
        options: SegmentOptions,
        *,
        suffix: str = "",
        on_read: CharacterProgress = lambda size: None,
    ) -> None:
        """`on_read` gets the number of bytes that were read, time and again."""
        self.source = source
        self.segment_count = self.element_count = self.characters = 0
        self._offsets: list[np.ndarray] = []
        self._probabilities: list[np.ndarray] = []
        self.stream = SegmentStream(
            source.read_chunks(on_read),
            source.name,
            pipeline,
            options,
            suffix=suffix,
            on_block=self._add_block,
        )

    def __iter__(self) -> Iterator[TextSegment]:
        for segment in self.stream:
            self.segment_count += 1
            yield segment

    def _add_block(self, block: ScoredElements) -> None:
        self.element_count += len(block.table)
        self.characters = block.table.end
        self._offsets.append(block.table.offsets)
        self._probabilities.append(block.probabilities)

    @property
    def probabilities(self) -> np.ndarray:
        """P(boundary) of every element, (n,)."""
        return np.concatenate(self._probabilities)

    @property
    def summary(self) -> str:
        """One line: sizes, pipeline and limits."""
        return describe_segmentation(
            self.stream, self.segment_count, self.element_count, self.characters
        )

    def render_json(self) -> Iterator[str]:
        """Pieces of one JSON object in one line: segments, then elements, then sizes."""
        stream, source = self.stream, self.source
        head = {
            "file": source.name,
            "encoding": source.encoding,
            "segmenter": stream.pipeline.name,
            "threshold": stream.decision_threshold,
            "unit": stream.unit,
        }
        byte_offset, separator = 0, _dump(head)[:-1] + ', "segments": ['
        for segment in self:
            core = segment.text[segment.start - segment.overlap_start :]
            byte_end = byte_offset + len(core.encode(source.encoding))
            data = segment_to_dict(segment) | {
                "bytes": [byte_offset, byte_end],
                "elements": [segment.first, segment.last],
            }
            yield separator + _dump(data)
            byte_offset, separator = byte_end, ", "
        yield '], "elements": {"start": ['
        yield from _render_numbers([offsets[:, 0] for offsets in self._offsets])
        yield '], "end": ['
        yield from _render_numbers([offsets[:, 1] for offsets in self._offsets])
        yield '], "probability": ['
        yield from _render_numbers([p.round(PROBABILITY_DIGITS) for p in self._probabilities])
        yield f']}}, "characters": {self.characters}, "bytes": {byte_offset}}}\n'

    def render_json_lines(self) -> Iterator[str]:
        """A JSON object in a line for every segment."""
        for segment in self:
            yield _dump({"source": self.source.name} | segment_to_dict(segment)) + "\n"


def _render_numbers(arrays: list[np.ndarray]) -> Iterator[str]:
    """Numbers of arrays, separated by commas, an array at a time."""
    for index, array in enumerate(arrays):
        yield (", " if index else "") + _dump(array.tolist())[1:-1]


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
