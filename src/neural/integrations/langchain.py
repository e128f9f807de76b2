"""Text splitter for LangChain: chunks are segments by topic within a token budget.

    from neural.integrations.langchain import NeuralTextSplitter

    splitter = NeuralTextSplitter(chunk_size=512, chunk_overlap=32, tokenizer="tokenizer.json")
    documents = splitter.split_documents(documents)
    splitter = NeuralTextSplitter.from_huggingface_tokenizer(tokenizer, chunk_size=512)

The metadata of a chunk has `start_index`, `title`, `probability` and `tokens`.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from langchain_core.documents import Document
from langchain_text_splitters import TextSplitter

from neural.integrations._chunks import (
    DEFAULT_CHUNK_TOKENS,
    describe_chunk,
    split_into_chunks,
)
from neural.tasks.segmentation.segment_stream import TextSegment
from neural.tasks.segmentation.token_counting import make_token_counter
from neural.workflows.segment import Segmenter


class NeuralTextSplitter(TextSplitter):
    """Splits texts by topic; no chunk has more than `chunk_size` tokens, its overlap included."""

    def __init__(
        self,
        chunk_size: int = DEFAULT_CHUNK_TOKENS,
        chunk_overlap: int = 0,
        *,
        tokenizer: Any = None,
        length_function: Callable[[str], int] | None = None,
        strip_whitespace: bool = False,
        segmenter: Segmenter | None = None,
        **options: Any,
    ) -> None:
        """`tokenizer` and `options` are those of `neural.segment`.

        `length_function` is LangChain's name for a tokenizer. With `strip_whitespace`, chunks have
        no white space at their ends; otherwise, without overlap, they joined are the text.
        `segmenter` is one that is loaded already.
        """
        counter = make_token_counter(tokenizer or length_function or "words")
        super().__init__(
            chunk_size,
            chunk_overlap,
            length_function=counter.count,
            add_start_index=True,
            strip_whitespace=strip_whitespace,
        )
        loaded = segmenter or Segmenter.load()
        self._segmenter = Segmenter(
            loaded.pipeline,
            loaded.options.replace(
                max_tokens=chunk_size, overlap=chunk_overlap, tokenizer=counter, **options
            ),
        )

    @classmethod
    def from_huggingface_tokenizer(cls, tokenizer: Any, **kwargs: Any) -> NeuralTextSplitter:
        """Splitter that counts with a tokenizer of transformers, special tokens included.

        LangChain's own method leaves them out, so a chunk could be longer than the model reads.
        """
        return cls(tokenizer=tokenizer, **kwargs)

    def split_text(self, text: str) -> list[str]:
        """Texts of the chunks."""
        return [content for content, _, _ in self._split(text)]

    def create_documents(
        self, texts: list[str], metadatas: list[dict[Any, Any]] | None = None
    ) -> list[Document]:
        """Documents of all chunks, with exact positions."""
        documents = []
        for text, metadata in zip(texts, metadatas or [{}] * len(texts), strict=True):
            documents += [
                Document(
                    page_content=content,
                    metadata=copy.deepcopy(metadata)
                    | {"start_index": start}
                    | describe_chunk(segment),
                )
                for content, start, segment in self._split(text)
            ]
        return documents

    def _split(self, text: str) -> list[tuple[str, int, TextSegment]]:
        """Content and start of every chunk, and its segment."""
        chunks = []
        for segment in split_into_chunks(self._segmenter, text):
            content, start = segment.text, segment.overlap_start
            if self._strip_whitespace:
                start += len(content) - len(content.lstrip())
                content = content.strip()
            if content:
                chunks.append((content, start, segment))
        return chunks
