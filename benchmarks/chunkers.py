"""Text chunkers of other packages: a text and a size → spans of characters.

The size is counted by a function, such as `len` for characters. As segmenters of documents whose
sentences are known, chunkers get a text with a sentence per line; a segment starts at the first
sentence that starts in a chunk. `wtpsplit` is left out: it downloads weights when it is first used.
chonkie's semantic chunker would, too: it gets the vectors of wordllama.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from neural.tasks.segmentation.boundary_encoding import boundaries_to_lengths
from neural.tasks.segmentation.document import SegmentationDocument
from neural.tasks.segmentation.metrics.pk import Pk
from neural.tasks.segmentation.tokenization import STOP_WORDS

CountTokens = Callable[[str], int]
Span = tuple[int, int]
SplitText = Callable[[str, int, CountTokens], Iterable[Span]]
SIZE_FACTORS = (1, 2, 4)
"""Sizes that are tried, as multiples of the mean length of the true segments."""
TUNED_DOCUMENTS = 20
"""The size is chosen on the first documents."""
MAX_QUADRATIC_CHARACTERS = 40_000
"""Chunkers that take quadratic time are left out if documents are longer than this on average."""


@dataclass(frozen=True)
class Chunker:
    """A chunker of another package."""

    name: str
    packages: tuple[str, ...]
    """Packages that must be installed."""
    split: SplitText
    """Spans of a text, at most as large as the size by the counting function."""
    has_size: bool = True
    """False: it finds segments without a size."""
    has_limit: bool = True
    """Whether the size is a limit in tokens of any kind; else it is a target, in characters."""
    is_quadratic: bool = False
    """Whether its time grows with the square of the length."""

    @property
    def missing_packages(self) -> list[str]:
        """Packages that are not installed."""
        return [package for package in self.packages if not find_spec(package)]


def list_chunkers() -> Iterator[Chunker]:
    """Chunkers whose packages are installed."""
    return (chunker for chunker in CHUNKERS if not chunker.missing_packages)


def list_missing() -> list[str]:
    """Messages about chunkers that are not installed."""
    return [
        f"{chunker.name} is not measured: pip install {' '.join(chunker.missing_packages)}"
        for chunker in CHUNKERS
        if chunker.missing_packages
    ]


def segment_sentences(chunker: Chunker, sentences: Sequence[str], size: int) -> np.ndarray:
    """True at the sentences where a segment starts; the size is in characters."""
    starts = np.cumsum([0, *(len(sentence) + 1 for sentence in sentences)])[:-1]
    boundaries = np.zeros(len(sentences), bool)
    for start, _ in chunker.split("\n".join(sentences), size, len):
        boundaries[min(int(np.searchsorted(starts, start)), len(starts) - 1)] = True
    boundaries[0] = False
    return boundaries


def run_chunkers(
    documents: Sequence[SegmentationDocument],
) -> Iterator[tuple[str, int | None, list[np.ndarray]]]:
    """Name, size in characters and boundaries of every chunker.

    The size is the mean length of the true segments, or 2 or 4 times that: the one with the best
    Pk on the first documents. None for chunkers without a size. Chunkers that take quadratic time
    are left out for long documents.
    """
    mean_characters = np.mean([len("\n".join(document.elements)) for document in documents])
    mean_length = np.mean(
        [
            len("\n".join(document.elements)) / len(boundaries_to_lengths(document.boundaries))
            for document in documents
        ]
    )
    pk = Pk()
    for chunker in list_chunkers():
        if chunker.is_quadratic and mean_characters > MAX_QUADRATIC_CHARACTERS:
            continue

        def size_pk(size: int, chunker: Chunker = chunker) -> float:
            return float(
                np.mean(
                    [
                        pk.score_document(
                            document.boundaries, segment_sentences(chunker, document.elements, size)
                        )
                        for document in documents[:TUNED_DOCUMENTS]
                    ]
                )
            )

        size = int(mean_length)
        if chunker.has_size:
            size = min((int(mean_length * factor) for factor in SIZE_FACTORS), key=size_pk)
        boundaries = [segment_sentences(chunker, document.elements, size) for document in documents]
        yield chunker.name, size if chunker.has_size else None, boundaries


def find_spans(text: str, chunks: Iterable[str]) -> Iterator[Span]:
    """Spans of chunks, which are searched in the text one after the other."""
    position = 0
    for chunk in chunks:
        stripped = chunk.strip()
        # Some chunkers change white space inside a chunk: its beginning is enough.
        start = text.find(stripped[:40], position)
        if stripped and start >= 0:
            position = start + max(1, len(stripped) - 1)
            yield start, min(start + len(stripped), len(text))


def _split_semchunk(text: str, size: int, count: CountTokens) -> Iterable[Span]:
    import semchunk

    _, offsets = semchunk.chunkerify(count, size)(text, offsets=True)
    return offsets


def _create_chonkie_splitter(class_name: str, **options: Any) -> SplitText:
    def split(text: str, size: int, count: CountTokens) -> Iterator[Span]:
        import chonkie

        tokenizer = "character" if count is len else count
        chunker = getattr(chonkie, class_name)(tokenizer=tokenizer, chunk_size=size, **options)
        return ((chunk.start_index, chunk.end_index) for chunk in chunker.chunk(text))

    return split


def _split_chonkie_semantic(text: str, size: int, count: CountTokens) -> Iterator[Span]:
    from chonkie import SemanticChunker

    chunker = SemanticChunker(embedding_model=_wordllama_embeddings(), chunk_size=size)
    return ((chunk.start_index, chunk.end_index) for chunk in chunker.chunk(text))


def _split_langchain(text: str, size: int, count: CountTokens) -> Iterator[Span]:
    from langchain_text_splitters import RecursiveCharacterTextSplitter

    splitter = RecursiveCharacterTextSplitter(
        chunk_size=size, chunk_overlap=0, length_function=count, add_start_index=True
    )
    for document in splitter.create_documents([text]):
        start = document.metadata["start_index"]
        yield start, start + len(document.page_content)


def _split_wordllama(text: str, size: int, count: CountTokens) -> Iterator[Span]:
    return find_spans(text, _load_wordllama().split(text, target_size=size))


def _split_nltk(text: str, size: int, count: CountTokens) -> Iterator[Span]:
    from nltk.tokenize.texttiling import TextTilingTokenizer

    # It needs paragraphs: lines become paragraphs, and positions are mapped back.
    paragraphs = text.replace("\n", "\n\n")
    try:
        chunks = TextTilingTokenizer(stopwords=sorted(STOP_WORDS)).tokenize(paragraphs)
    except ValueError:  # the text is too short
        return
    for start, end in find_spans(paragraphs, chunks):
        yield start - paragraphs.count("\n\n", 0, start), end - paragraphs.count("\n\n", 0, end)


@cache
def _load_wordllama() -> Any:
    from safetensors.numpy import load_file
    from tokenizers import Tokenizer
    from wordllama.inference import WordLlamaInference

    # its own loader expects the tokenizer in another folder, and then downloads it
    spec = find_spec("wordllama")
    folder = Path((spec.submodule_search_locations or [""])[0] if spec else "")
    (table,) = load_file(folder / "weights" / "l2_supercat_256.safetensors").values()
    tokenizer = Tokenizer.from_file(
        str(folder / "tokenizers" / "l2_supercat_tokenizer_config.json")
    )
    return WordLlamaInference(table, tokenizer)


@cache
def _wordllama_embeddings() -> Any:
    """The vectors of wordllama as an embedding model of chonkie; sizes are in characters."""
    from chonkie.embeddings import BaseEmbeddings

    class WordLlamaEmbeddings(BaseEmbeddings):
        def embed(self, text: str) -> np.ndarray:
            return _load_wordllama().embed(text)[0]

        def embed_batch(self, texts: list[str]) -> list[np.ndarray]:
            return list(_load_wordllama().embed(texts))

        @property
        def dimension(self) -> int:
            return 256

        def get_tokenizer(self) -> str:
            return "character"

    return WordLlamaEmbeddings()


CHUNKERS = (
    Chunker("semchunk", ("semchunk",), _split_semchunk),
    Chunker(
        "chonkie recursive",
        ("chonkie",),
        _create_chonkie_splitter("RecursiveChunker", min_characters_per_chunk=24),
    ),
    Chunker(
        "chonkie sentence",
        ("chonkie",),
        _create_chonkie_splitter("SentenceChunker", chunk_overlap=0),
    ),
    Chunker(
        "chonkie token", ("chonkie",), _create_chonkie_splitter("TokenChunker"), has_limit=False
    ),
    Chunker("chonkie semantic", ("chonkie", "wordllama"), _split_chonkie_semantic, has_limit=False),
    Chunker("langchain recursive", ("langchain_text_splitters",), _split_langchain),
    Chunker("wordllama", ("wordllama",), _split_wordllama, has_limit=False),
    Chunker(
        "nltk TextTiling",
        ("nltk",),
        _split_nltk,
        has_size=False,
        has_limit=False,
        is_quadratic=True,
    ),
)
