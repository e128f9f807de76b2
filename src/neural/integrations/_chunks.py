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
    """Metadata: title, and if known probability and number of tokens.

    There are no None values, which many vector stores refuse.
    """
    metadata = {
        "title": segment.title,
        "probability": segment.probability,
        "tokens": segment.tokens,
    }
    return {key: value for key, value in metadata.items() if value is not None}
