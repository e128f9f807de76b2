"""Node parser for LlamaIndex: nodes are segments by topic within a token budget.

    from neural.integrations.llama_index import NeuralNodeParser

    parser = NeuralNodeParser(chunk_size=512, chunk_overlap=32, tokenizer="tokenizer.json")
    nodes = parser.get_nodes_from_documents(documents)

The metadata of a node has `title`, `probability` and `tokens`; they are not part of the text for
embeddings and language models. The metadata of the document are, so they count for the budget,
unless `include_metadata` is False.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llama_index.core.bridge.pydantic import Field, PrivateAttr
from llama_index.core.node_parser.interface import MetadataAwareTextSplitter
from llama_index.core.node_parser.node_utils import build_nodes_from_splits
from llama_index.core.schema import BaseNode, Document, MetadataMode
from llama_index.core.utils import get_tqdm_iterable

from neural.core.errors import TaskError
from neural.integrations._chunks import (
    DEFAULT_CHUNK_TOKENS,
    describe_chunk,
    split_into_chunks,
)
from neural.tasks.segmentation.segment_stream import TextSegment
from neural.tasks.segmentation.token_counting import TokenCounter, make_token_counter
from neural.workflows.segment import Segmenter

METADATA_FORMAT_TOKENS = 2
"""Tokens between the metadata and the text of a node, as LlamaIndex reserves them."""
POSITION_KEY = "neural_position"
"""Metadata key in which positions are kept while nodes are made; not in the result."""


class NeuralNodeParser(MetadataAwareTextSplitter):
    """Splits documents by topic; no node has more than `chunk_size` tokens, its overlap included."""

    chunk_size: int = Field(
        default=DEFAULT_CHUNK_TOKENS, description="Largest number of tokens of a node.", gt=0
    )
    chunk_overlap: int = Field(
        default=0, description="Tokens that a node repeats from before it.", ge=0
    )

    _segmenter: Segmenter = PrivateAttr()
    _counter: TokenCounter = PrivateAttr()

    def __init__(
        self,
        chunk_size: int = DEFAULT_CHUNK_TOKENS,
        chunk_overlap: int = 0,
        *,
        tokenizer: Any = None,
        segmenter: Segmenter | None = None,
        segment_options: dict[str, Any] | None = None,
        **fields: Any,
    ) -> None:
        """`tokenizer` and `segment_options` are arguments of `neural.segment`.

        `segmenter` is one that is loaded already; `fields` are those of LlamaIndex's node parsers.
        """
        super().__init__(chunk_size=chunk_size, chunk_overlap=chunk_overlap, **fields)
        loaded = segmenter or Segmenter.load()
        self._counter = make_token_counter(tokenizer or "words")
        self._segmenter = Segmenter(
            loaded.pipeline,
            loaded.options.replace(
                max_tokens=chunk_size,
                overlap=chunk_overlap,
                tokenizer=self._counter,
                **(segment_options or {}),
            ),
        )

    @classmethod
    def class_name(cls) -> str:
        """Name in serialized pipelines."""
        return "NeuralNodeParser"

    def split_text(self, text: str) -> list[str]:
        """Texts of the nodes of a text without metadata."""
        return [segment.text for segment in self._split(text, "")]

    def split_text_metadata_aware(self, text: str, metadata_str: str) -> list[str]:
        """Texts of the nodes of a text whose metadata count for the budget."""
        return [segment.text for segment in self._split(text, metadata_str)]

    def _split(self, text: str, metadata_str: str) -> list[TextSegment]:
        reserved = 0
        if metadata_str:
            reserved = self._counter.count(metadata_str) + METADATA_FORMAT_TOKENS
        if reserved + self.chunk_overlap >= self.chunk_size:
            raise TaskError(
                f"the metadata of a document have {reserved} tokens, so a chunk_size of "
                f"{self.chunk_size} leaves none for its text: raise chunk_size or set "
                "include_metadata=False"
            )
        return split_into_chunks(self._segmenter, text, max_tokens=self.chunk_size - reserved)

    def _parse_nodes(
        self, nodes: Sequence[BaseNode], show_progress: bool = False, **kwargs: Any
    ) -> list[BaseNode]:
        """Nodes of all documents."""
        all_nodes: list[BaseNode] = []
        for node in get_tqdm_iterable(nodes, show_progress, "Parsing nodes"):
            metadata_str = self._get_metadata_str(node) if self.include_metadata else ""
            segments = [
                segment
                for segment in self._split(
                    node.get_content(metadata_mode=MetadataMode.NONE), metadata_str
                )
                if segment.text.strip()
            ]
            new_nodes = build_nodes_from_splits(
                [segment.text for segment in segments], node, id_func=self.id_func
            )
            for new_node, segment in zip(new_nodes, segments, strict=True):
                metadata = describe_chunk(segment)
                new_node.metadata = metadata | {POSITION_KEY: (segment.overlap_start, segment.end)}
                for keys in ("excluded_embed_metadata_keys", "excluded_llm_metadata_keys"):
                    setattr(new_node, keys, [*getattr(new_node, keys), *metadata])
            all_nodes += new_nodes
        return all_nodes

    def _postprocess_parsed_nodes(
        self, nodes: list[BaseNode], parent_doc_map: dict[str, Document]
    ) -> list[BaseNode]:
        """LlamaIndex searches the positions of nodes by their text; ours are known."""
        positions = [node.metadata.pop(POSITION_KEY) for node in nodes]
        nodes = super()._postprocess_parsed_nodes(nodes, parent_doc_map)
        for node, (start, end) in zip(nodes, positions, strict=True):
            node.start_char_idx, node.end_char_idx = start, end
        return nodes
