"""Other people's chunkers that install without downloads, as segmenters of documents whose sentences are known.

Each is given a text with a sentence per line (per paragraph for nltk, which looks for these) and a size in characters
(nltk knows none); a part begins at the first sentence that begins in a chunk. `wtpsplit` and chonkie's semantic
chunker fetch their weights from the network when they are first used, so they are not here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from neural.tasks.cutting.terms import SMALL

Chunker = Callable[[Sequence[str], int], np.ndarray]
"""Sentences and a size → True where a part begins."""


def chunkers() -> Iterator[tuple[str, Chunker, bool]]:
    """Those that are installed, and whether the size says anything to them."""
    for name, (package, make) in _KNOWN.items():
        if find_spec(package):
            yield name, make(), package != "nltk"


def missing() -> list[str]:
    """Those that are not."""
    return [f"{name} is not here: pip install {one}" for name, (one, _) in _KNOWN.items() if not find_spec(one)]


def begins(sentences: Sequence[str], chunks: Sequence[str], between: str = "\n") -> np.ndarray:
    """Where chunks begin, in sentences; chunks are found again in the text one after the other."""
    text = between.join(sentences)
    starts = np.cumsum([0, *(len(one) + len(between) for one in sentences)])[:-1]
    found, at = np.zeros(len(sentences), bool), 0
    for chunk in chunks:
        first = chunk.strip()[:40]
        place = text.find(first, at)
        if not first or place < 0:
            continue
        found[min(int(np.searchsorted(starts, place)), len(starts) - 1)] = True
        at = place + max(1, len(chunk.strip()) - len(between))
    found[0] = False
    return found


def _semchunk() -> Chunker:
    import semchunk

    return lambda sentences, size: begins(sentences, list(semchunk.chunk("\n".join(sentences), size, len)))


def _chonkie() -> Chunker:
    from chonkie import RecursiveChunker

    def cut(sentences: Sequence[str], size: int) -> np.ndarray:
        made = RecursiveChunker(tokenizer="character", chunk_size=size, min_characters_per_chunk=24)
        return begins(sentences, [one.text for one in made.chunk("\n".join(sentences))])

    return cut


def _wordllama() -> Chunker:
    from safetensors.numpy import load_file
    from tokenizers import Tokenizer
    from wordllama.inference import WordLlamaInference

    # its own loader looks for the tokenizer in another folder than the package puts it, and then on the network
    spec = find_spec("wordllama")
    folder = Path((spec.submodule_search_locations or [""])[0] if spec else "")
    (table,) = load_file(folder / "weights" / "l2_supercat_256.safetensors").values()
    tokenizer = Tokenizer.from_file(str(folder / "tokenizers" / "l2_supercat_tokenizer_config.json"))
    model = WordLlamaInference(table, tokenizer)
    return lambda sentences, size: begins(sentences, model.split("\n".join(sentences), target_size=size))


def _nltk() -> Chunker:
    from nltk.tokenize.texttiling import TextTilingTokenizer

    def cut(sentences: Sequence[str], size: int) -> np.ndarray:
        tiling = TextTilingTokenizer(stopwords=sorted(SMALL))
        try:
            return begins(sentences, tiling.tokenize("\n\n".join(sentences)), "\n\n")
        except ValueError:   # too short for it
            return np.zeros(len(sentences), bool)

    return cut


_KNOWN = {
    "semchunk": ("semchunk", _semchunk), "chonkie": ("chonkie", _chonkie), "wordllama": ("wordllama", _wordllama),
    "nltk TextTiling": ("nltk", _nltk),
}  # fmt: skip
