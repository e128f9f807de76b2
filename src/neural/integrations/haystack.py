"""Document splitter for Haystack: documents are segments by topic within a token budget.

    from neural.integrations.haystack import NeuralDocumentSplitter

    splitter = NeuralDocumentSplitter(max_tokens=512, overlap=32, tokenizer="tokenizer.json")
    pipeline.add_component("splitter", splitter)

The metadata of a document has `source_id`, `split_id` and `split_idx_start`, as Haystack's own
splitters write them, and `title`, `probability` and `tokens`.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from haystack import Document, component, default_to_dict

from neural.integrations._chunks import (
    DEFAULT_CHUNK_TOKENS,
    describe_chunk,
    split_into_chunks,
)
from neural.workflows.segment import Segmenter


@component
class NeuralDocumentSplitter:
    """Splits documents by topic; none has more than `max_tokens` tokens, its overlap included."""

    def __init__(
        self,
        max_tokens: int = DEFAULT_CHUNK_TOKENS,
        overlap: float = 0,
        tokenizer: Any = None,
        segmenter: str | None = None,
        options: dict[str, Any] | None = None,
    ) -> None:
        """`tokenizer` and `options` are arguments of `neural.segment`.

        `segmenter` is the path of a run or of a saved segmenter; None is that of the package. A
        pipeline with the splitter can be saved if the tokenizer is a text.
        """
        self.max_tokens, self.overlap, self.tokenizer = max_tokens, overlap, tokenizer
        self.segmenter, self.options = segmenter, options
        self._loaded = Segmenter.load(
            segmenter,
            max_tokens=max_tokens,
            overlap=overlap,
            tokenizer=tokenizer,
            **(options or {}),
        )

    def to_dict(self) -> dict[str, Any]:
        """The arguments, for saved pipelines."""
        return default_to_dict(
            self,
            max_tokens=self.max_tokens,
            overlap=self.overlap,
            tokenizer=self.tokenizer,
            segmenter=self.segmenter,
            options=self.options,
        )

    @component.output_types(documents=list[Document])
    def run(self, documents: list[Document]) -> dict[str, list[Document]]:
        """Documents of all segments. ValueError for a document without text."""
        split_documents = []
        for document in documents:
            if document.content is None:
                raise ValueError(f"document {document.id} has no text to split")
            split_documents += [
                Document(
                    content=segment.text,
                    meta=deepcopy(document.meta)
                    | {
                        "source_id": document.id,
                        "split_id": number,
                        "split_idx_start": segment.overlap_start,
                    }
                    | describe_chunk(segment),
                )
                for number, segment in enumerate(split_into_chunks(self._loaded, document.content))
            ]
        return {"documents": split_documents}
