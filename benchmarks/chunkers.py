"""Text chunkers of other packages as segmenters of documents whose sentences are known.

Each gets a text with a sentence per line (per paragraph for nltk, which needs them) and a size in
characters (nltk has none). A segment starts at the first sentence that starts in a chunk.
`wtpsplit` and chonkie's semantic chunker are left out: they download weights when they are first
used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from neural.tasks.segmentation.tokenization import STOP_WORDS

Chunker = Callable[[Sequence[str], int], np.ndarray]
"""Sentences and a size → True where a segment starts."""


def chunkers() -> Iterator[tuple[str, Chunker, bool]]:
    """Installed chunkers by name, and whether they use the size."""
    for name, (package, create) in _CHUNKERS.items():
        if find_spec(package):
            yield name, create(), package != "nltk"


def missing() -> list[str]:
    """Messages about chunkers that are not installed."""
    return [
        f"{name} is not installed: pip install {package}"
        for name, (package, _) in _CHUNKERS.items()
        if not find_spec(package)
    ]


def chunks_to_boundaries(
    sentences: Sequence[str], chunks: Sequence[str], separator: str = "\n"
) -> np.ndarray:
    """Boundaries of chunks in sentences; chunks are searched in the text one after the other."""
    text = separator.join(sentences)
    starts = np.cumsum([0, *(len(sentence) + len(separator) for sentence in sentences)])[:-1]
    boundaries, position = np.zeros(len(sentences), bool), 0
    for chunk in chunks:
        beginning = chunk.strip()[:40]
        offset = text.find(beginning, position)
        if not beginning or offset < 0:
            continue
        boundaries[min(int(np.searchsorted(starts, offset)), len(starts) - 1)] = True
        position = offset + max(1, len(chunk.strip()) - len(separator))
    boundaries[0] = False
    return boundaries


def _semchunk() -> Chunker:
    import semchunk

    return lambda sentences, size: chunks_to_boundaries(
        sentences, list(semchunk.chunk("\n".join(sentences), size, len))
    )


def _chonkie() -> Chunker:
    from chonkie import RecursiveChunker

    def segment(sentences: Sequence[str], size: int) -> np.ndarray:
        chunker = RecursiveChunker(
            tokenizer="character", chunk_size=size, min_characters_per_chunk=24
        )
        chunks = [chunk.text for chunk in chunker.chunk("\n".join(sentences))]
        return chunks_to_boundaries(sentences, chunks)

    return segment


def _wordllama() -> Chunker:
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
    model = WordLlamaInference(table, tokenizer)
    return lambda sentences, size: chunks_to_boundaries(
        sentences, model.split("\n".join(sentences), target_size=size)
    )


def _nltk() -> Chunker:
    from nltk.tokenize.texttiling import TextTilingTokenizer

    def segment(sentences: Sequence[str], size: int) -> np.ndarray:
        tiling = TextTilingTokenizer(stopwords=sorted(STOP_WORDS))
        try:
            return chunks_to_boundaries(sentences, tiling.tokenize("\n\n".join(sentences)), "\n\n")
        except ValueError:  # the text is too short
            return np.zeros(len(sentences), bool)

    return segment


_CHUNKERS = {
    "semchunk": ("semchunk", _semchunk),
    "chonkie": ("chonkie", _chonkie),
    "wordllama": ("wordllama", _wordllama),
    "nltk TextTiling": ("nltk", _nltk),
}
