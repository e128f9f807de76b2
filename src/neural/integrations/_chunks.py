"""What all adapters share: segments of a text as chunks with metadata."""

from __future__ import annotations

from typing import Any

from neural.tasks.segmentation.segment_stream import TextSegment
from neural.workflows.segment import Segmenter

DEFAULT_CHUNK_TOKENS = 512


def split_into_chunks(segmenter: Segmenter, text: str, **options: Any) -> list[TextSegment]:
    """Segments of a text; none for an empty text, which other libraries pass on, too."""
    return list(segmenter.stream(text, **options)) if text.strip().strip("\ufeff") else []


def describe_chunk(segment: TextSegment) -> dict[str, Any]:
    """Metadata: title, probability and number of tokens, the same keys for every segment.

    Many vector stores refuse None, so the probability is 1 for the first segment, and 0 where an
    element was divided.
    """
    probability = segment.probability
    if probability is None:
        probability = 1.0 if segment.start == 0 else 0.0
    return {"title": segment.title, "probability": probability, "tokens": segment.tokens or 0}
